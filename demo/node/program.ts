/** The program that the demo starts, and what the demo asks Kubernetes for. */
import type { JsonObject } from '../../src/kube';
import { UNTIL_READY, aBoost, percentageIncrease } from '../../test/support/builders';
import { NAMESPACE } from '../cast';

/** See scripts/lib/demoProgram.mjs, which builds its image. */
export interface Program {
  readonly image: string;
  /** For people: what it is, with versions. */
  readonly title: string;
  readonly readyPath: string;
  readonly memory: string;
}

/** Enough for a small service that runs; what the demo is about is that it is not enough to start. */
export const ORIGINAL_MILLICORES = 250;
/** To one CPU: a machine of two has the other one left for the cluster. */
const INCREASE_PERCENT = 300;
const CONTAINER = 'app';
const PORT = 8080;

export const BOOST: JsonObject = aBoost({
  name: 'fast-start',
  namespace: NAMESPACE,
  selector: { matchLabels: { app: 'with-boost' } },
  containerPolicies: [percentageIncrease(CONTAINER, INCREASE_PERCENT)],
  durationPolicy: UNTIL_READY,
});

/** For both starts the same but for the name, which the boost selects by. */
export function deploymentOf(name: string, program: Program): JsonObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: podSpecOf(program) },
    },
  };
}

/** A pod that the boost selects: to see by a dry run whether admission boosts it yet. */
export function probeOf(program: Program): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'probe', namespace: NAMESPACE, labels: { app: 'with-boost' } },
    spec: podSpecOf(program),
  };
}

function podSpecOf({ image, memory, readyPath }: Program): JsonObject {
  const amounts = { cpu: `${ORIGINAL_MILLICORES}m`, memory };
  return {
    // It is measured until it is Ready; nobody waits for how it ends.
    terminationGracePeriodSeconds: 1,
    containers: [
      {
        name: CONTAINER,
        image,
        imagePullPolicy: 'Never',
        resources: { requests: amounts, limits: amounts },
        readinessProbe: {
          httpGet: { path: readyPath, port: PORT },
          periodSeconds: 1,
          timeoutSeconds: 2,
        },
      },
    ],
  };
}
