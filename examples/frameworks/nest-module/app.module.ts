import { Inject, Injectable, Module } from "@nestjs/common";
import type { WorkerUtils } from "hathi";
import { HathiModule, type HathiModuleOptions, WORKER_UTILS } from "./hathi.module.ts";
import type { TaskProvider } from "./task-provider.ts";

@Injectable()
export class Mailer {
  send(to: string): void {
    console.log(`A mail for ${to}`);
  }
}

@Module({ providers: [Mailer], exports: [Mailer] })
class MailModule {}

/** A task with something injected. */
@Injectable()
class SendWelcome implements TaskProvider<{ to: string }> {
  readonly identifier = "nest-send-welcome";
  readonly #mailer: Mailer;

  constructor(@Inject(Mailer) mailer: Mailer) {
    this.#mailer = mailer;
  }

  async run({ to }: { to: string }): Promise<void> {
    this.#mailer.send(to);
  }
}

/** Adds jobs. */
@Injectable()
export class UsersService {
  readonly #utils: WorkerUtils;

  constructor(@Inject(WORKER_UTILS) utils: WorkerUtils) {
    this.#utils = utils;
  }

  async signUp(email: string): Promise<void> {
    await this.#utils.addJob("nest-send-welcome", { to: email });
  }
}

@Module({})
export class AppModule {
  static with(options: HathiModuleOptions["options"]) {
    const hathi = HathiModule.forRoot({ options, tasks: [SendWelcome], imports: [MailModule] });
    return { module: AppModule, imports: [hathi], providers: [UsersService] };
  }
}
