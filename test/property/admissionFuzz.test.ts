/** Damaged reviews: whatever anybody sends, the answer is whole, pods are allowed and nothing grows. */
import { Agent, request } from 'node:https';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { z } from 'zod';
import { startAdmission } from '../../src/admission';
import type { AdmissionProcess, NamespaceView } from '../../src/admission';
import { MUTATE_PATH, VALIDATE_PATH, reviewEndpoints } from '../../src/admission/app';
import { answerReview } from '../../src/admission/reviewEndpoint';
import type { Reply, ReviewEndpoint } from '../../src/admission/reviewEndpoint';
import {
  BOOST_KEY,
  compileBoost,
  decideBoost,
  fieldsOf,
  formatRecord,
  isObject,
  parseQuantity,
  parseRecord,
  readPod,
} from '../../src/boost-engine';
import type { JsonObject } from '../../src/kube';
import { createLogger, createMetrics } from '../../src/observability';
import { RESOURCE_SHAPES, aBoost, aContainer, aPod, percentageIncrease } from '../support/builders';
import { aCertificate, always } from '../support/certificates';
import { Tally } from '../support/fuzzing';
import { ManualClock } from '../support/manualClock';
import { patched } from '../support/patched';
import { aBoostReview, aReview } from '../unit/admission/reviews';

const RUNS = 100_000;
const SOCKET_RUNS = 1_000;

const EVERY_CONTAINER: JsonObject = {
  matchContainers: { type: 'RegexName', value: '.*' },
  percentageIncrease: { value: 100 },
};
const BOOST = aBoost({ containerPolicies: [percentageIncrease('app', 50), EVERY_CONTAINER] });

const NAMESPACE: NamespaceView = {
  boosts: [compileBoost(BOOST)],
  limitRanges: [{ spec: { limits: [{ type: 'Container', max: { cpu: '64' } }] } }],
  quotas: [{ spec: { hard: { 'limits.cpu': '100' }, scopes: ['BestEffort'] } }],
};

const endpoints = reviewEndpoints({
  namespaces: { view: () => NAMESPACE, problem: () => undefined, liveChecks: [] },
  clock: new ManualClock(),
});

/** The record that a second call of the webhook finds on a pod. */
const RECORD = boostedRecord();

function boostedRecord(): JsonObject {
  const decision = decideBoost({
    pod: fullPod(),
    namespace: 'default',
    ...NAMESPACE,
    now: Date.parse('2026-01-02T03:04:05Z'),
  });
  if (decision.kind !== 'Boost') throw new Error(`not boosted: ${decision.kind}`);
  return z.looseObject({}).parse(JSON.parse(formatRecord(decision.record)));
}

interface Sample {
  readonly path: string;
  readonly review: JsonObject;
  /** Every place of the review. */
  readonly places: readonly Path[];
}

type Path = readonly (string | number)[];

/** Legal reviews. */
const SAMPLES: readonly Sample[] = [
  sample(MUTATE_PATH, aReview()),
  sample(MUTATE_PATH, aReview({ object: fullPod() })),
  sample(MUTATE_PATH, aReview({ object: markedPod(JSON.stringify(RECORD)) })),
  sample(VALIDATE_PATH, aBoostReview({ object: BOOST })),
  sample(
    VALIDATE_PATH,
    aBoostReview({ operation: 'UPDATE', object: fullBoost(), oldObject: BOOST }),
  ),
];

const RECORD_PLACES = placesOf(RECORD);

function sample(path: string, review: JsonObject): Sample {
  return { path, review, places: placesOf(review) };
}

function fullPod(): JsonObject {
  return aPod({
    annotations: { note: 'text' },
    containers: [
      aContainer({ resizePolicy: [{ resourceName: 'memory', restartPolicy: 'NotRequired' }] }),
      aContainer({ name: 'worker' }),
    ],
    spec: {
      initContainers: [aContainer({ name: 'init', resources: RESOURCE_SHAPES['limit only'] })],
      priorityClassName: 'high',
      os: { name: 'linux' },
    },
  });
}

/** `fullPod` as the boost leaves it, but for the record. */
function markedPod(record: string): JsonObject {
  return aPod({
    labels: { app: 'app', [BOOST_KEY]: 'boost' },
    annotations: { [BOOST_KEY]: record },
    containers: [
      aContainer({ resources: { requests: { cpu: '375m' }, limits: { cpu: '1500m' } } }),
      aContainer({
        name: 'worker',
        resources: { requests: { cpu: '500m' }, limits: { cpu: '2' } },
      }),
    ],
  });
}

function fullBoost(): JsonObject {
  return aBoost({
    selector: {
      matchLabels: { app: 'app' },
      matchExpressions: [{ key: 'tier', operator: 'In', values: ['web', 'api'] }],
    },
    containerPolicies: [
      {
        matchContainers: { type: 'ExactName', value: 'app' },
        fixedResources: { requests: '2', limits: '3' },
      },
      { containerName: 'worker', percentageIncrease: { value: 10 } },
    ],
    durationPolicy: {
      podCondition: { type: 'Ready', status: 'True' },
      fixedDuration: { unit: 'Seconds', value: 60 },
    },
  });
}

type Damage =
  | { readonly kind: 'Replace'; readonly value: unknown }
  | { readonly kind: 'Remove' }
  /** A list gets the item twice, an object the value under another key. */
  | { readonly kind: 'Double'; readonly key: string };

const nested = (depth: number, [open, close]: readonly [string, string]): unknown =>
  JSON.parse(open.repeat(depth) + close.repeat(depth));

const VALUES: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  1e308,
  -1e308,
  2 ** 53,
  '',
  ' ',
  'app',
  '250m',
  '-1',
  '1e99',
  '9'.repeat(40),
  '1'.repeat(500),
  '💥',
  '\u0000',
  '\ud800',
  'é'.repeat(300),
  '__proto__',
  '/~0~1',
  '(a+)+$',
  '{"initCPURequests":{"app":"8"}}',
  [],
  {},
  [[]],
  [null, 7, 'app', {}],
  { cpu: '1' },
  { name: 'app' },
  nested(90, ['[', ']']),
  nested(400, ['[', ']']),
  Array.from({ length: 300 }, (_, index) => ({
    name: `app-${index}`,
    resources: { requests: { cpu: '1' } },
  })),
  Array.from({ length: 30 }, () => aContainer()),
];

const KEYS = ['__proto__', 'constructor', 'toString', 'length', 'cpu', '', 'é/~'];

const damage: fc.Arbitrary<Damage> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('Replace' as const),
      value: fc.oneof(fc.constantFrom(...VALUES), fc.jsonValue({ maxDepth: 2 })),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('Remove' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('Double' as const),
      key: fc.constantFrom(...KEYS),
    }),
  },
);

/** What is sent where. */
interface Sent {
  readonly path: string;
  readonly text: string;
}

const at = fc.nat();

const sent: fc.Arbitrary<Sent> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc
      .record({ sample: fc.constantFrom(...SAMPLES), at, damage })
      .map(({ sample: { path, review, places }, at, damage }) => ({
        path,
        text: jsonText(damaged(review, places[at % places.length] ?? [], damage)),
      })),
  },
  {
    weight: 1,
    arbitrary: fc.record({ at, damage }).map(({ at, damage }) => {
      const place = RECORD_PLACES[at % RECORD_PLACES.length] ?? [];
      const record = jsonText(damaged(RECORD, place, damage));
      return { path: MUTATE_PATH, text: JSON.stringify(aReview({ object: markedPod(record) })) };
    }),
  },
  {
    weight: 1,
    arbitrary: fc
      .record({ sample: fc.constantFrom(...SAMPLES), at, insert: fc.constantFrom(...KEYS) })
      .map(({ sample: { path, review }, at, insert }) => {
        const text = JSON.stringify(review);
        const position = at % text.length;
        return { path, text: text.slice(0, position) + insert + text.slice(position + 1) };
      }),
  },
);

/** Empty where there is nothing left to write. */
function jsonText(value: unknown): string {
  return value === undefined ? '' : JSON.stringify(value);
}

function placesOf(value: unknown, path: Path = []): readonly Path[] {
  const inner = Array.isArray(value)
    ? value.flatMap((item, index) => placesOf(item, [...path, index]))
    : [...fieldsOf(value)].flatMap(([key, item]) => placesOf(item, [...path, key]));
  return [path, ...inner];
}

/** A damaged copy; `Object.fromEntries` makes a field even of `__proto__`, as JSON.parse does. */
function damaged(value: unknown, [step, ...rest]: Path, damage: Damage): unknown {
  if (step === undefined) return damage.kind === 'Replace' ? damage.value : value;
  const isHere = rest.length === 0;
  const change = (item: unknown) => damaged(item, rest, damage);
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown, index): unknown[] => {
      if (index !== step) return [item];
      if (isHere && damage.kind === 'Remove') return [];
      return isHere && damage.kind === 'Double' ? [item, item] : [change(item)];
    });
  }
  return Object.fromEntries(
    [...fieldsOf(value)].flatMap(([key, item]): (readonly [string, unknown])[] => {
      if (key !== step) return [[key, item]];
      if (isHere && damage.kind === 'Remove') return [];
      return isHere && damage.kind === 'Double'
        ? [
            [key, item],
            [damage.key, item],
          ]
        : [[key, change(item)]];
    }),
  );
}

const answerSchema = z.strictObject({
  apiVersion: z.literal('admission.k8s.io/v1'),
  kind: z.literal('AdmissionReview'),
  response: z.strictObject({
    uid: z.string(),
    allowed: z.boolean(),
    patchType: z.literal('JSONPatch').optional(),
    patch: z.base64().optional(),
    status: z
      .strictObject({
        code: z.int(),
        reason: z.string().min(1).optional(),
        message: z.string().min(1),
      })
      .optional(),
    warnings: z.array(z.string().min(1)).optional(),
    auditAnnotations: z.record(z.string(), z.string()).optional(),
  }),
});

const patchSchema = z.array(
  z.union([
    z.strictObject({ op: z.enum(['add', 'replace']), path: z.string(), value: z.unknown() }),
    z.strictObject({ op: z.literal('remove'), path: z.string() }),
  ]),
);

const PATCHED =
  /^\/spec\/containers\/\d+\/resources\/(requests|limits)\/cpu$|^\/metadata\/(labels|annotations)(\/autoscaling\.x-k8s\.io~1startup-cpu-boost(-skipped)?)?$/;

/** What every answer must be; returns the code of its result. */
function check({ path, text }: Sent, reply: Reply): string {
  const { result } = reply.note;
  holds(result !== 'Error', 'no mistake is left to the error boundary');
  if (reply.kind === 'Refused') {
    holds(reply.status === 400, 'what is no review is a bad request');
    return result;
  }
  const { response } = answerSchema.parse(JSON.parse(JSON.stringify(reply.body)));
  const request = fieldsOf(fieldsOf(parsed(text)).get('request'));
  holds(response.uid === request.get('uid'), 'the answer is for the request');
  holds(
    (response.patchType === undefined) === (response.patch === undefined),
    'a patch has its type',
  );
  holds(response.allowed || path !== MUTATE_PATH, 'a pod is allowed');
  holds(response.allowed || response.status !== undefined, 'a refusal has its reason');
  if (response.patch !== undefined) {
    checkPatch(request.get('object'), Buffer.from(response.patch, 'base64').toString());
  }
  return result;
}

function checkPatch(object: unknown, text: string): void {
  const patch = patchSchema.parse(JSON.parse(text));
  if (!isObject(object)) throw new Error(`a patch for what is no object: ${text}`);
  const after = patched(object, patch);
  for (const { op, path } of patch) {
    holds(PATCHED.test(path), `nothing else is changed, such as ${path}`);
    if (!path.startsWith('/spec/')) continue;
    const before = parseQuantity(valueAt(object, path)) ?? -1n;
    const now = parseQuantity(valueAt(after, path)) ?? -1n;
    const isGivenBack = now < before && now === recordedAt(object, path);
    holds(
      op === 'replace' && before >= 0n && (now > before || isGivenBack),
      `CPU is raised, or goes back to its recorded original: ${text}`,
    );
  }
}

/** What the pod's record calls the original of the value at a path of PATCHED. */
function recordedAt(pod: object, path: string): bigint | undefined {
  const parsedRecord = parseRecord(readPod(pod).annotations?.get(BOOST_KEY) ?? '');
  if (parsedRecord.kind === 'Unreadable') return undefined;
  const [, , , index, , list] = path.split('/');
  const name = readPod(pod).containers[Number(index)]?.name ?? '';
  const original = parsedRecord.record.containers.get(name)?.original;
  return parseQuantity(list === 'requests' ? original?.request : original?.limit);
}

/** Jest's own takes longer than all else here together. */
function holds(isTrue: boolean, law: string): void {
  if (!isTrue) throw new Error(`does not hold: ${law}`);
}

function valueAt(object: unknown, pointer: string): unknown {
  return pointer
    .split('/')
    .slice(1)
    .reduce<unknown>(
      (value, step) =>
        Array.isArray(value) ? (value[Number(step)] as unknown) : fieldsOf(value).get(step),
      object,
    );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function endpointOf(path: string): ReviewEndpoint {
  const endpoint = endpoints.find((candidate) => candidate.path === path);
  if (endpoint === undefined) throw new Error(`no endpoint at ${path}`);
  return endpoint;
}

describe('a review that was damaged in one place', () => {
  // The webhook is called before the API server has validated anything, and by whoever reaches its
  // port: an answer that is not whole, or a patch that does not apply, keeps a pod from running.
  it('gets a whole answer, and leaves nothing behind', () => {
    const tally = new Tally();
    const answerMany = (numRuns: number): void => {
      fc.assert(
        fc.property(sent, (each) => {
          tally.count(check(each, answerReview(each.text, endpointOf(each.path))));
        }),
        { numRuns },
      );
    };
    answerMany(RUNS / 5);
    const before = heapBytes();
    answerMany((RUNS * 4) / 5);
    // Compiled code and the engine's caches settle within a few MB; one review has some kB.
    expect(heapBytes() - before).toBeLessThan(20 * 2 ** 20);
    tally.expectShares({
      Boost: 0.1,
      AlreadyBoosted: 0.01,
      NoBoostMatches: 0.01,
      Accepted: 0.05,
      Refused: 0.05,
      MalformedReview: 0.05,
      MalformedPod: 0.001,
      LimitRangeExceeded: 0.001,
      UnreadableQuantity: 0.0005,
    });
  }, 300_000);
});

describe('damaged reviews over one HTTPS connection after another', () => {
  let admission: AdmissionProcess;
  let agent: Agent;
  const clock = new ManualClock();
  beforeAll(async () => {
    const certificate = await aCertificate();
    admission = await startAdmission({
      namespaces: { view: () => NAMESPACE, problem: () => undefined, liveChecks: [] },
      certificates: always(certificate),
      settings: { webhookAddress: { host: '127.0.0.1', port: 0 }, drainMs: 0 },
      logger: createLogger('silent', {}),
      metrics: createMetrics(),
      clock,
    });
    agent = new Agent({ keepAlive: true, ca: certificate.ca });
  });
  afterAll(async () => {
    agent.destroy();
    const stopped = admission.stop();
    await clock.advance(1);
    await stopped;
  });

  // What the function answers is what the client gets: HTTP adds no way to hang, and no other status.
  it('get the same answers', async () => {
    await fc.assert(
      fc.asyncProperty(sent, async ({ path, text }) => {
        const reply = answerReview(text, endpointOf(path));
        const { status, body } = await post({ path, text });
        switch (reply.kind) {
          case 'Review':
            expect({ status, body }).toEqual({ status: 200, body: JSON.stringify(reply.body) });
            return;
          case 'Refused':
            expect({ status, body }).toEqual({ status: 400, body: `${reply.why}\n` });
        }
      }),
      { numRuns: SOCKET_RUNS },
    );
  });

  async function post({ path, text }: Sent): Promise<{ status: number; body: string }> {
    const headers = { 'content-type': 'application/json' };
    const { port } = admission;
    const outgoing = request({ host: '127.0.0.1', port, path, method: 'POST', headers, agent });
    outgoing.end(text);
    return new Promise((resolve, reject) => {
      outgoing.once('error', reject).once('response', (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (chunk) => (body += String(chunk)));
        response.once('error', reject).once('end', () => {
          resolve({ status: response.statusCode ?? 0, body });
        });
      });
    });
  }
});

/** Bytes that are still in use after a collection. */
function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc()');
  return process.memoryUsage().heapUsed;
}
