import fc from "fast-check";

// Every run of the suite tries the same cases, so that it fails because of a change and not by luck. `FC_SEED=7` tries others.
fc.configureGlobal({ seed: Number(process.env.FC_SEED ?? 15) });
