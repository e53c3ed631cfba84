import { EntitySchema, MikroORM } from "@mikro-orm/postgresql";
import type { Library } from "./library.ts";

/** It does not start without at least one. */
const Order = new EntitySchema<{ id: number }>({
  name: "Order",
  properties: { id: { type: "number", primary: true } },
});

async function openOrm(url: string): Promise<MikroORM> {
  return MikroORM.init({ clientUrl: url, entities: [Order], pool: { min: 0, max: 1 } });
}

export const mikroOrm: Library = {
  name: "MikroORM",
  open: async (url) => {
    const orm = await openOrm(url);
    return {
      transaction: (work) => orm.em.fork().transactional((em) => work(em)),
      outside: orm.em.fork(),
      close: () => orm.close(),
    };
  },
};

export const mikroOrmBegin: Library = {
  name: "MikroORM, begun by hand",
  open: async (url) => {
    const orm = await openOrm(url);
    return {
      transaction: async (work) => {
        const em = orm.em.fork();
        await em.begin();
        try {
          await work(em);
          await em.commit();
        } catch (error) {
          await em.rollback();
          throw error;
        }
      },
      outside: orm.em.fork(),
      close: () => orm.close(),
    };
  },
};
