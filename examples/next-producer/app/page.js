export default function Page() {
  return <pre>{`curl http://localhost:3000/api/sign-up -d '{"email":"ada@example.com"}'`}</pre>;
}
