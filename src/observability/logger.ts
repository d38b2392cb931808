/** Structured JSON logs on standard output, one line per decision. */
import { pino } from 'pino';

export type LogFields = Readonly<Record<string, unknown>>;

/** What the rest of the program asks of a logger; pino's own shape. */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  child(fields: LogFields): Logger;
}

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Writes synchronously: a line that was logged is out even if the process is killed right after. */
export function createLogger(level: LogLevel, fields: LogFields): Logger {
  return pino({
    level,
    base: fields,
    messageKey: 'message',
    errorKey: 'error',
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  });
}
