/** Everything that a chaos run happens on: API server, played node, load balancer, and the processes. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  AuthenticationV1TokenRequest,
  CoreV1Api,
  V1TokenRequestSpec,
} from '@kubernetes/client-node';
import { expect } from '@jest/globals';
import { BOOST_KEY } from '../../../src/boost-engine';
import { issueAuthority } from '../../../src/certificates';
import { NAMESPACES, PODS, SECRETS, STARTUP_CPU_BOOSTS, loadKubeConfig } from '../../../src/kube';
import type { JsonObject, KubeClient, ResourceRef } from '../../../src/kube';
import { startControlPlane } from '../../support/controlPlane';
import type { ControlPlane } from '../../support/controlPlane';
import { eventually } from '../../support/eventually';
import { KubeletPlayer } from '../../support/kubelet';
import type { AutoKubelet } from '../../support/kubelet';
import type { Role } from '../../support/processes';
import { TcpProxy } from '../../support/tcpProxy';
import { installWebhooks } from '../../support/webhooks';
import { AdmissionService } from './admissionService';
import { REPLICAS } from './plan';
import { Replica } from './replica';
import { BOOSTS, FIRST_SPECS, NAMESPACE, boostManifest, podManifest } from './shapes';

const SYSTEM_NAMESPACE = 'startup-cpu-boost';
const SERVICE_ACCOUNTS: ResourceRef = { group: '', version: 'v1', plural: 'serviceaccounts' };
const BINDINGS: ResourceRef = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  plural: 'clusterrolebindings',
};

/** Longer than any run. */
const TOKEN_SECONDS = 86_400;

/** By the defaults of docs/settings.md. */
const SERVICE = { namespace: SYSTEM_NAMESPACE, name: 'startup-cpu-boost-webhook' };
const CA_SECRET = { ...SECRETS, namespace: SYSTEM_NAMESPACE, name: 'startup-cpu-boost-ca' };
export const SERVING_SECRET = { ...CA_SECRET, name: 'startup-cpu-boost-serving' };

/**
 * A third of it is longer than a silent watch goes unnoticed: a replica that has not heard of the next
 * certificate serves one that is still valid.
 */
const CERTIFICATE_SECONDS = 600;
/** Its life is over to two thirds so long after the start. */
const ROTATION_AFTER_SECONDS = 15;

const ENV = {
  POD_NAMESPACE: SYSTEM_NAMESPACE,
  // Longer than the load balancer takes to hear that a replica is to stop.
  WEBHOOK_DRAIN_SECONDS: '3',
  // At all addresses, since EndpointSlices may not have those of the loopback.
  WEBHOOK_BIND_ADDR: '',
  CERT_MODE: 'self-managed',
  CA_LIFETIME_SECONDS: String(CERTIFICATE_SECONDS),
  SERVING_LIFETIME_SECONDS: String(CERTIFICATE_SECONDS),
  CA_PUBLISH_WAIT_SECONDS: '5',
};

export interface ChaosStage {
  readonly controlPlane: ControlPlane;
  readonly client: KubeClient;
  readonly kubelet: KubeletPlayer;
  readonly replicas: readonly Replica[];
  /** Ends all processes by SIGTERM, and says which of them did not end well. */
  stopReplicas(): Promise<void>;
  /** The API server and what stands before it; its logs are gone then. */
  stop(): Promise<void>;
}

export async function startStage(): Promise<ChaosStage> {
  const controlPlane = await startControlPlane({ crds: true, audit: true });
  const { client } = controlPlane;
  const kubelet = await KubeletPlayer.start(client);
  const auto = kubelet.auto();
  await createNamespaces(client);
  const service = await AdmissionService.start(client, SERVICE);
  await createOldAuthority(client);
  const replicas: Replica[] = [];
  for (const role of ['admission', 'controller'] as const) {
    for (let index = 1; index <= REPLICAS; index += 1) {
      const name = `${role}-${index}`;
      const proxy = await TcpProxy.start(apiPort(controlPlane));
      const kubeconfigPath = await writeKubeconfig(controlPlane, name, proxy.port);
      replicas.push(
        new Replica({ role, name, proxy, service, options: { kubeconfigPath, env: ENV } }),
      );
    }
  }
  // A controller fills the caBundles.
  await installWebhooks(client, { url: service.url, namespaces: [NAMESPACE] });
  await Promise.all(replicas.map((replica) => replica.start()));
  for (const name of BOOSTS) {
    const boosts = { ...STARTUP_CPU_BOOSTS, namespace: NAMESPACE };
    await eventually(() => client.create(boosts, boostManifest(name, FIRST_SPECS[name])));
  }
  await untilBoosting(client);
  return {
    controlPlane,
    client,
    kubelet,
    replicas,
    stopReplicas: async () => {
      await Promise.all(replicas.map((replica) => replica.end()));
    },
    stop: () => stopAll({ auto, service, replicas, controlPlane }),
  };
}

/** The API server's name for the user of a replica, and back. */
export function roleOfUser(user: string): Role | 'Other' {
  const match = /^system:serviceaccount:startup-cpu-boost:(admission|controller)-\d$/.exec(user);
  if (match === null) return 'Other';
  return match[1] === 'admission' ? 'admission' : 'controller';
}

interface Running {
  readonly auto: AutoKubelet;
  readonly service: AdmissionService;
  readonly replicas: readonly Replica[];
  readonly controlPlane: ControlPlane;
}

async function stopAll({ auto, service, replicas, controlPlane }: Running): Promise<void> {
  await Promise.all(replicas.map((replica) => replica.destroy()));
  await service.stop();
  await auto.stop();
  await controlPlane.stop();
}

async function createNamespaces(client: KubeClient): Promise<void> {
  for (const name of [NAMESPACE, SYSTEM_NAMESPACE]) {
    await client.create(NAMESPACES, namedObject('v1', 'Namespace', name));
  }
  // The rights of each process are not what this is about.
  await client.create(BINDINGS, {
    ...namedObject(`${BINDINGS.group}/v1`, 'ClusterRoleBinding', SYSTEM_NAMESPACE),
    roleRef: { apiGroup: BINDINGS.group, kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [
      {
        apiGroup: BINDINGS.group,
        kind: 'Group',
        name: `system:serviceaccounts:${SYSTEM_NAMESPACE}`,
      },
    ],
  });
}

/** So that each run has a whole rotation, of a CA that is used and of what it has signed. */
async function createOldAuthority(client: KubeClient): Promise<void> {
  const lifetimeMs = CERTIFICATE_SECONDS * 1_000;
  const age = (lifetimeMs * 2) / 3 - ROTATION_AFTER_SECONDS * 1_000;
  const { certificate, key } = await issueAuthority({ now: Date.now() - age, lifetimeMs });
  await client.create(CA_SECRET, {
    ...namedObject('v1', 'Secret', CA_SECRET.name),
    stringData: { 'ca.crt': certificate, 'ca.key': key },
  });
}

function namedObject(apiVersion: string, kind: string, name: string): JsonObject {
  return { apiVersion, kind, metadata: { name } };
}

/** Of a service account of its own, so that the audit log tells the processes apart. */
async function writeKubeconfig(
  { client, dir, kubeconfigPath }: ControlPlane,
  name: string,
  port: number,
): Promise<string> {
  const namespace = SYSTEM_NAMESPACE;
  const account = namedObject('v1', 'ServiceAccount', name);
  await client.create({ ...SERVICE_ACCOUNTS, namespace }, account);
  const admin = loadKubeConfig({ kind: 'File', path: kubeconfigPath });
  const body = new AuthenticationV1TokenRequest();
  body.spec = new V1TokenRequestSpec();
  body.spec.audiences = [];
  body.spec.expirationSeconds = TOKEN_SECONDS;
  const request = { namespace, name, body };
  const { status } = await admin
    .makeApiClient(CoreV1Api)
    .createNamespacedServiceAccountToken(request);
  const cluster = {
    server: `https://127.0.0.1:${port}`,
    'certificate-authority-data': admin.getCurrentCluster()?.caData,
  };
  const path = join(dir, 'replicas', `${name}.kubeconfig`);
  await mkdir(join(dir, 'replicas'), { recursive: true });
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    contexts: [{ name, context: { cluster: name, user: name } }],
    clusters: [{ name, cluster }],
    users: [{ name, user: { token: status?.token } }],
  };
  await writeFile(path, JSON.stringify(config));
  return path;
}

function apiPort({ kubeconfigPath }: ControlPlane): number {
  const kubeConfig = loadKubeConfig({ kind: 'File', path: kubeconfigPath });
  return Number(new URL(kubeConfig.getCurrentCluster()?.server ?? '').port);
}

/** The API server needs a moment for new webhooks. */
async function untilBoosting(client: KubeClient): Promise<void> {
  for (const boost of BOOSTS) {
    await eventually(async () => {
      const pod = podManifest('probe', 'Burstable', boost);
      const pods = { ...PODS, namespace: NAMESPACE };
      const answer = await client.create(pods, pod, { dryRun: true });
      expect(answer).toMatchObject({ metadata: { labels: { [BOOST_KEY]: boost } } });
    });
  }
}
