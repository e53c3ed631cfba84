import { accessSync, constants, statfsSync } from "node:fs";
import { tmpdir } from "node:os";

const memory = "/dev/shm";
const neededBytes = 6 * 1024 ** 3;

/**
 * Where the servers of the tests keep their files: in memory, where there is room for them. The tests make and drop thousands of
 * databases of a thousand files each, and ext4 searches long for an inode that was not freed just now.
 */
export function serverFolder(): string {
  try {
    accessSync(memory, constants.W_OK);
    const { bavail, bsize } = statfsSync(memory);
    return bavail * bsize >= neededBytes ? memory : tmpdir();
  } catch {
    return tmpdir();
  }
}
