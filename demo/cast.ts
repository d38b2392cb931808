/** Who appears in the demo: the boosts, and pods of every kind with the moments of their lives. */
import type { JsonObject } from '../src/kube';
import { UNTIL_READY, aBoost, aContainer, aPod, untilSeconds } from '../test/support/builders';

export const NAMESPACE = 'demo';

export interface Role {
  readonly name: string;
  readonly pod: JsonObject;
  /** Containers that the pod's boost should raise; the others have to stay as they are. */
  readonly boosted: readonly string[];
  /** All in milliseconds since the first pod. */
  readonly createdAt: number;
  readonly runningAt: number;
  /** Undefined: it never gets Ready. */
  readonly readyAt?: number;
}

const SHOP = { 'app.kubernetes.io/part-of': 'shop' };

export const BOOSTS: readonly JsonObject[] = [
  aBoost({
    name: 'shop',
    namespace: NAMESPACE,
    selector: { matchLabels: SHOP },
    containerPolicies: [
      { matchContainers: { type: 'RegexName', value: '^app' }, percentageIncrease: { value: 100 } },
    ],
    durationPolicy: UNTIL_READY,
  }),
  aBoost({
    name: 'imports',
    namespace: NAMESPACE,
    selector: { matchLabels: { job: 'import' } },
    containerPolicies: [
      {
        matchContainers: { type: 'ExactName', value: 'importer' },
        fixedResources: { requests: '1' },
      },
    ],
    durationPolicy: untilSeconds(8),
  }),
];

export const CAST: readonly Role[] = [
  {
    name: 'spring',
    pod: shopPod('spring', [
      container('app', { cpu: '500m', memory: '512Mi' }, { cpu: '500m', memory: '512Mi' }),
    ]),
    boosted: ['app'],
    createdAt: 0,
    runningAt: 700,
    readyAt: 7_000,
  },
  {
    name: 'checkout',
    pod: shopPod('checkout', [
      container('app', { cpu: '250m', memory: '128Mi' }, { cpu: '1', memory: '256Mi' }),
    ]),
    boosted: ['app'],
    createdAt: 1_000,
    runningAt: 1_700,
    readyAt: 5_000,
  },
  {
    name: 'import',
    pod: aPod({
      name: 'import',
      namespace: NAMESPACE,
      labels: { job: 'import' },
      containers: [container('importer', { cpu: '200m' })],
    }),
    boosted: ['importer'],
    createdAt: 2_000,
    runningAt: 2_700,
  },
  {
    name: 'orders',
    pod: shopPod('orders', [
      container('app', { cpu: '300m' }, { cpu: '500m' }),
      container('proxy', { cpu: '100m' }, { cpu: '100m' }),
    ]),
    boosted: ['app'],
    createdAt: 3_000,
    runningAt: 3_700,
    readyAt: 13_000,
  },
  {
    name: 'legacy',
    pod: shopPod('legacy', [
      {
        ...container('app', { cpu: '400m' }, { cpu: '400m' }),
        resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }],
      },
    ]),
    boosted: [],
    createdAt: 4_000,
    runningAt: 4_700,
    readyAt: 9_000,
  },
];

/** Of the shop, so that admission boosts it: to see whether it does yet. */
export const PROBE: JsonObject = shopPod('probe', [container('app', { cpu: '100m' })]);

function shopPod(name: string, containers: readonly JsonObject[]): JsonObject {
  return aPod({ name, namespace: NAMESPACE, labels: { ...SHOP, app: name }, containers });
}

function container(
  name: string,
  requests: Readonly<Record<string, string>>,
  limits?: Readonly<Record<string, string>>,
): JsonObject {
  return aContainer({
    name,
    image: `example/${name}:1`,
    resources: { requests, ...(limits === undefined ? {} : { limits }) },
  });
}
