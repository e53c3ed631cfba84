import { answer } from "./answers.ts";

/* The form that asks for a token. It needs no script, and nothing of the app, which only those may load who are signed in. */

export const signInStyle = `:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { display: grid; place-items: center; min-height: 90vh; margin: 0; }
form { display: grid; gap: 12px; width: min(340px, 90vw); }
h1 { font-size: 20px; margin: 0; }
label { display: grid; gap: 4px; }
input, button { font: inherit; padding: 8px 10px; border-radius: 6px; border: 1px solid #8888; }
button { background: #2459c4; color: #fff; border-color: #2459c4; cursor: pointer; }
[role="alert"] { color: #b3261e; margin: 0; }
@media (prefers-color-scheme: dark) { [role="alert"] { color: #ff9d94; } }
`;

/** `base` leads from this address to where the dashboard is mounted. */
export function signInPage(base: string, isWrong: boolean): Response {
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<base href="${base}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sign in · Hathi</title>
<link rel="stylesheet" href="sign-in.css">
</head>
<body>
<form method="post" action="sign-in">
<h1>Hathi</h1>
${isWrong ? '<p role="alert">This token is not known.</p>' : ""}
<label>Token<input name="token" type="password" autocomplete="current-password" required autofocus></label>
<button type="submit">Sign in</button>
</form>
</body>
</html>
`;
  return answer(html, "text/html; charset=utf-8", { status: 401 });
}
