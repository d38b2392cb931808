/** Finds out by handshakes which certificates the admission endpoints serve. */
import type { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { connect } from 'node:tls';
import { fieldsOf, integerOf, itemsOf, textOf } from '../boost-engine';
import type { Clock, JsonObject, KubeClient, ResourceRef } from '../kube';
import type { AdmissionEndpoints } from './rotationPlan';

export interface EndpointAddress {
  readonly host: string;
  readonly port: number;
}

export interface ServiceName {
  readonly namespace: string;
  readonly name: string;
}

const ENDPOINT_SLICES: ResourceRef = {
  group: 'discovery.k8s.io',
  version: 'v1',
  plural: 'endpointslices',
};

/** As long as the API server waits for the mutating webhook, and a little: who is slower is not there. */
const HANDSHAKE_TIMEOUT_MS = 3_000;

/** Replicas of admission are a handful; a Service with more addresses selects something else. */
const MAX_ADDRESSES = 100;

/**
 * Ready or not, each address counts: one that is not Ready yet may be at the next moment. The Service
 * is to have no port but that of the webhooks.
 *
 * @throws ApiError
 */
export async function askAdmissionEndpoints(
  client: KubeClient,
  clock: Clock,
  service: ServiceName,
): Promise<AdmissionEndpoints> {
  const { items } = await client.list(ENDPOINT_SLICES, {
    namespace: service.namespace,
    labelSelector: `kubernetes.io/service-name=${service.name}`,
  });
  const servername = `${service.name}.${service.namespace}.svc`;
  const certificates = await Promise.all(
    endpointAddresses(items).map((address) => servedCertificate(address, servername, clock)),
  );
  const served = certificates.filter((each) => each !== undefined);
  return { served, silent: certificates.length - served.length };
}

/** The addresses of EndpointSlices that nobody has checked, each once. */
export function endpointAddresses(slices: readonly JsonObject[]): readonly EndpointAddress[] {
  const addresses = new Map<string, EndpointAddress>();
  for (const slice of slices) {
    const ports = itemsOf(slice.ports).flatMap((port) => {
      const number = integerOf(fieldsOf(port).get('port')) ?? 0;
      return number > 0 && number <= 65_535 ? [number] : [];
    });
    const hosts = itemsOf(slice.endpoints)
      .flatMap((endpoint) => itemsOf(fieldsOf(endpoint).get('addresses')))
      .flatMap((host) => textOf(host) ?? [])
      .filter((host) => isIP(host) !== 0);
    for (const host of hosts) {
      for (const port of ports) addresses.set(`${host} ${port}`, { host, port });
    }
  }
  return [...addresses.values()].slice(0, MAX_ADDRESSES);
}

/** Undefined where there is no answer in time, or no certificate. */
function servedCertificate(
  { host, port }: EndpointAddress,
  servername: string,
  clock: Clock,
): Promise<X509Certificate | undefined> {
  return new Promise((resolve) => {
    // Nothing is sent: whether to trust what is served is the very question.
    const socket = connect({ host, port, servername, rejectUnauthorized: false });
    const settle = (certificate: X509Certificate | undefined): void => {
      timer.cancel();
      // With a word of goodbye where there was a conversation.
      if (certificate === undefined) socket.destroy();
      else socket.destroySoon();
      resolve(certificate);
    };
    const timer = clock.setTimer(HANDSHAKE_TIMEOUT_MS, () => {
      settle(undefined);
    });
    socket.on('error', () => {
      settle(undefined);
    });
    socket.once('secureConnect', () => {
      settle(socket.getPeerX509Certificate());
    });
  });
}
