import { DataSource } from "typeorm";
import type { Library } from "./library.ts";

async function openDataSource(url: string): Promise<DataSource> {
  return new DataSource({ type: "postgres", url, extra: { max: 1 } }).initialize();
}

export const typeOrmManager: Library = {
  name: "TypeORM EntityManager",
  open: async (url) => {
    const dataSource = await openDataSource(url);
    return {
      transaction: (work) => dataSource.transaction((manager) => work(manager)),
      outside: dataSource.manager,
      close: () => dataSource.destroy(),
    };
  },
};

export const typeOrmRunner: Library = {
  name: "TypeORM QueryRunner",
  open: async (url) => {
    const dataSource = await openDataSource(url);
    return {
      transaction: async (work) => {
        const runner = dataSource.createQueryRunner();
        await runner.startTransaction();
        try {
          await work(runner);
          await runner.commitTransaction();
        } catch (error) {
          await runner.rollbackTransaction();
          throw error;
        } finally {
          await runner.release();
        }
      },
      outside: dataSource.createQueryRunner(),
      close: () => dataSource.destroy(),
    };
  },
};
