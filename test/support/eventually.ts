/** Waits for a state of the world that others bring about. */
import { setTimeout as delay } from 'node:timers/promises';

/** Long enough for a loaded machine; a state that comes at all comes within a second. */
const WITHIN_MS = 20_000;

/** Repeats the check until it does not throw, and returns what it returns. */
export async function eventually<T>(check: () => T | Promise<T>, withinMs = WITHIN_MS): Promise<T> {
  const end = Date.now() + withinMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) throw error;
      await delay(25);
    }
  }
}
