import { EventEmitter } from "node:events";
import type { Emit, HathiEventMap } from "./events.ts";
import type { WorkerPluginContext } from "./plugin-context.ts";

/**
 * Events are for watching, never for steering: no decision in this library depends on one, and a listener that throws or rejects is
 * reported, not obeyed.
 */
export function makeEmit(
  emitter: Pick<EventEmitter, "emit" | "rawListeners" | "listenerCount">,
  context: WorkerPluginContext,
  onListenerError: (error: unknown, name: string) => void,
): Emit {
  const emit: Emit = (name, payload) => {
    if (!isPlain(emitter)) {
      try {
        emitter.emit(name, { ctx: context, ...payload });
      } catch (error) {
        onListenerError(error, name);
      }
      return;
    }
    if (emitter.listenerCount(name) === 0) return;
    const withContext = { ctx: context, ...payload };
    for (const listener of emitter.rawListeners(name)) {
      try {
        const returned: unknown = listener.call(emitter, withContext);
        if (returned instanceof Promise) returned.catch((error: unknown) => onListenerError(error, name));
      } catch (error) {
        onListenerError(error, name);
      }
    }
  };
  emit.heard = (name) => !isPlain(emitter) || emitter.listenerCount(name) > 0;
  return emit;
}

/**
 * Node's own `emit` calls the listeners and does nothing else, so we may do that ourselves, one guarded call each, and skip
 * events without listeners. A subclass or a patched emitter gets every event through its own `emit`; it may have been patched
 * since the last event.
 */
function isPlain(emitter: Pick<EventEmitter, "emit">): boolean {
  return emitter.emit === EventEmitter.prototype.emit;
}

/** An observer inside the library: what to do on which event. */
export type EventHandlers = { readonly [Name in keyof HathiEventMap]?: (payload: HathiEventMap[Name]) => void };

/** Gives an `emit` that calls each event's handlers in order, and then passes the event on. */
export function observeEvents(emit: Emit, observers: readonly EventHandlers[]): Emit {
  const handlers: { [Name in keyof HathiEventMap]?: NonNullable<EventHandlers[Name]>[] } = {};
  const add = <Name extends keyof HathiEventMap>(name: Name, handler: EventHandlers[Name]): void => {
    const known: NonNullable<EventHandlers[Name]>[] | undefined = handlers[name];
    if (handler) Object.assign(handlers, { [name]: [...(known ?? []), handler] });
  };
  for (const observer of observers) {
    for (const name of Object.keys(observer) as (keyof HathiEventMap)[]) add(name, observer[name]);
  }
  const observed: Emit = (name, payload) => {
    const own = handlers[name];
    if (own) for (const handle of own) guarded(handle, payload);
    emit(name, payload);
  };
  observed.heard = (name) => name in handlers || emit.heard(name);
  return observed;
}

/** An observer that throws, for example over an error that cannot be read, must not take a job with it. */
function guarded<Payload>(handle: (payload: Payload) => void, payload: Payload): void {
  try {
    handle(payload);
  } catch {}
}
