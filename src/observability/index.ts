/** Logs, metrics and probes. */
export { healthApp, listen, metricsApp, portOf, startHttpServer } from './healthServer';
export type { HealthCheck, HealthRoutes, ListenAddress, RunningServer } from './healthServer';
export { LOG_LEVELS, createLogger } from './logger';
export type { LogFields, LogLevel, Logger } from './logger';
export { createMetrics } from './metrics';
export type { Metrics } from './metrics';
