import { EntitySchema, MikroORM } from "@mikro-orm/postgresql";
import type { Library } from "./library.ts";

/** It does not start without at least one. */
const Order = new EntitySchema<{ id: number }>({
  name: "Order",
  properties: { id: { type: "number", primary: true } },
});

export const mikroOrm: Library = {
  name: "MikroORM",
  open: async (url) => {
    const orm = await MikroORM.init({ clientUrl: url, entities: [Order], pool: { min: 0, max: 1 } });
    return {
      transaction: (work) => orm.em.fork().transactional((em) => work(em)),
      outside: orm.em.fork(),
      close: () => orm.close(),
    };
  },
};
