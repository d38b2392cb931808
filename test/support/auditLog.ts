/** The API server's audit log (cluster.sh --audit) as data: who asked for what, and what was stored. */
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

export interface AuditEvent {
  /** The same for every stage of one request. */
  readonly id: string;
  /** `Received` alone is a request whose answer was swallowed by an end of the API server. */
  readonly stage: 'Received' | 'Complete' | 'Other';
  /** Epoch milliseconds: when the request came, and when this stage was reached. */
  readonly receivedAt: number;
  readonly at: number;
  readonly verb: string;
  readonly user: string;
  /** '' where there is none. */
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** 0 before the answer. */
  readonly code: number;
  /** The bodies, where the policy keeps them. */
  readonly request: unknown;
  readonly response: unknown;
}

export interface AuditLog {
  readonly events: readonly AuditEvent[];
  /** Lines that an end of the API server cut short. */
  readonly tornLines: number;
}

/** All of it, also what was moved to another file since the first became too large. */
export async function readAuditLog(folder: string): Promise<AuditLog> {
  const names = (await readdir(folder)).filter((name) => /^audit.*\.log$/.test(name)).sort();
  const logs: AuditLog[] = [];
  for (const name of names) logs.push(parseAuditLog(await readFile(join(folder, name), 'utf8')));
  return {
    events: logs.flatMap(({ events }) => events),
    tornLines: logs.reduce((sum, { tornLines }) => sum + tornLines, 0),
  };
}

export function parseAuditLog(text: string): AuditLog {
  const events: AuditEvent[] = [];
  let tornLines = 0;
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const event = parseLine(line);
    if (event === undefined) tornLines += 1;
    else events.push(event);
  }
  return { events, tornLines };
}

function parseLine(line: string): AuditEvent | undefined {
  const parsed = eventSchema.safeParse(parseJson(line));
  if (!parsed.success) return undefined;
  const { objectRef, user, responseStatus, ...event } = parsed.data;
  return {
    id: event.auditID,
    stage: STAGES[event.stage] ?? 'Other',
    receivedAt: Date.parse(event.requestReceivedTimestamp),
    at: Date.parse(event.stageTimestamp),
    verb: event.verb,
    user: user.username,
    resource: objectRef.resource,
    subresource: objectRef.subresource,
    namespace: objectRef.namespace,
    name: objectRef.name,
    code: responseStatus.code,
    request: event.requestObject,
    response: event.responseObject,
  };
}

const STAGES: Readonly<Record<string, AuditEvent['stage']>> = {
  RequestReceived: 'Received',
  ResponseComplete: 'Complete',
};

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

const text = z.string().default('');

/** https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/#audit-k8s-io-v1-Event */
const eventSchema = z.object({
  auditID: z.string(),
  stage: z.string(),
  verb: z.string(),
  requestReceivedTimestamp: z.string(),
  stageTimestamp: z.string(),
  user: z.object({ username: text }),
  objectRef: z
    .object({ resource: text, subresource: text, namespace: text, name: text })
    .default({ resource: '', subresource: '', namespace: '', name: '' }),
  responseStatus: z.object({ code: z.number().default(0) }).default({ code: 0 }),
  requestObject: z.unknown().optional(),
  responseObject: z.unknown().optional(),
});
