import { drain } from "./drain.mjs";

/** A fresh place holding what the plans say, in their order, handed to `use` and dropped afterwards. */
export async function withPlace({ places, system }, plans, use) {
  const fill = async (place) => {
    for (const plan of plans) await system.fill(place, plan);
  };
  const place = await places.open(system, plans.map(nameOf).join(" "), plans.length > 0 ? fill : undefined);
  try {
    return await use(place);
  } finally {
    await place.drop();
  }
}

/** Drains the jobs of the last plan; those of the plans before it stand around. */
export function drainFilled(context, plans, options = {}) {
  const filler = plans.slice(0, -1).reduce((sum, { count }) => sum + count, 0);
  return withPlace(context, plans, (place) => drain(context, place, { jobs: plans.at(-1).count, filler, ...options }));
}

function nameOf(plan) {
  return Object.entries(plan)
    .map(([key, value]) => `${key}${value}`)
    .join("");
}
