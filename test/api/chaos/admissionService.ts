/** The Service of admission: spreads connections, and has the EndpointSlices that name its replicas. */
import type { KubeClient, ResourceRef } from '../../../src/kube';
import { ownAddress } from '../../support/certificateStage';
import { LoadBalancer } from '../../support/loadBalancer';
import type { Backend } from '../../support/loadBalancer';
import { persist, unless } from './retries';

const SLICES: ResourceRef = { group: 'discovery.k8s.io', version: 'v1', plural: 'endpointslices' };

export interface ServiceName {
  readonly namespace: string;
  readonly name: string;
}

export class AdmissionService {
  /** Where the API server calls it. */
  readonly url: string;
  readonly #client: KubeClient;
  readonly #service: ServiceName;
  readonly #balancer: LoadBalancer;
  /** The last write of a slice: a replica may go before it has been named. */
  #writes: Promise<unknown> = Promise.resolve();

  private constructor(client: KubeClient, service: ServiceName, balancer: LoadBalancer) {
    this.#client = client;
    this.#service = service;
    this.#balancer = balancer;
    this.url = balancer.url;
  }

  static async start(client: KubeClient, service: ServiceName): Promise<AdmissionService> {
    return new AdmissionService(client, service, await LoadBalancer.start());
  }

  add(replica: Backend): void {
    this.#balancer.add(replica);
    this.#write(() => this.#client.create(this.#slices, this.#sliceOf(replica)));
  }

  /** Its process is gone. */
  remove(replica: Backend): void {
    this.#balancer.remove(replica);
    const name = this.#nameOf(replica);
    this.#write(() => unless('NotFound', () => this.#client.delete({ ...this.#slices, name })));
  }

  async stop(): Promise<void> {
    await this.#balancer.stop();
    await this.#writes.catch(() => undefined);
  }

  get #slices(): ResourceRef & { readonly namespace: string } {
    return { ...SLICES, namespace: this.#service.namespace };
  }

  #write(write: () => Promise<unknown>): void {
    const before = this.#writes;
    this.#writes = before
      .then(() => persist(() => unless('AlreadyExists', write)))
      // One that is missing only holds a rotation up.
      .catch(() => undefined);
  }

  /** As the controller manager writes it; the API server takes no loopback address. */
  #sliceOf(replica: Backend): Readonly<Record<string, unknown>> {
    return {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        name: this.#nameOf(replica),
        labels: { 'kubernetes.io/service-name': this.#service.name },
      },
      addressType: 'IPv4',
      ports: [{ name: 'webhook', port: portOf(replica), protocol: 'TCP' }],
      endpoints: [{ addresses: [ownAddress()], conditions: { ready: true } }],
    };
  }

  #nameOf(replica: Backend): string {
    return `${this.#service.name}-${portOf(replica)}`;
  }
}

function portOf({ webhookUrl }: Backend): number {
  return Number(new URL(webhookUrl).port);
}
