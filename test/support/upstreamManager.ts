/**
 * Plays the manager of google/kube-startup-cpu-boost as far as admission goes: it doubles the CPU of each
 * pod's first container, whatever boosts there are, writes a record as upstream does, and lets all boosts in.
 */
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { Server } from 'node:https';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { BOOST_KEY, formatCpu, parseQuantity } from '../../src/boost-engine';
import { MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS } from '../../src/kube';
import type { JsonObject, ObjectRef } from '../../src/kube';
import { ownAddress } from './certificateStage';
import { aCertificate } from './certificates';
import type { ControlPlane } from './controlPlane';
import { UPSTREAM } from './upstream';

const resourcesSchema = z.looseObject({ cpu: z.string() });

const reviewSchema = z.looseObject({
  request: z.looseObject({
    uid: z.string(),
    kind: z.looseObject({ kind: z.string() }),
    object: z.looseObject({
      metadata: z.looseObject({ labels: z.record(z.string(), z.string()).default({}) }),
      spec: z.looseObject({
        containers: z
          .array(
            z.looseObject({
              name: z.string(),
              resources: z.looseObject({ requests: resourcesSchema, limits: resourcesSchema }),
            }),
          )
          .optional(),
      }),
    }),
  }),
});

type Review = z.output<typeof reviewSchema>['request'];

export class UpstreamManager {
  readonly #controlPlane: ControlPlane;
  readonly #server: Server;
  readonly #slice: ObjectRef;

  private constructor(controlPlane: ControlPlane, server: Server, slice: ObjectRef) {
    this.#controlPlane = controlPlane;
    this.#server = server;
    this.#slice = slice;
  }

  /** Of the release that was installed: its Service gets an endpoint, its webhooks a caBundle. */
  static async start(controlPlane: ControlPlane): Promise<UpstreamManager> {
    const { client } = controlPlane;
    const { namespace, service } = UPSTREAM;
    const { certificate, key, ca } = await aCertificate({
      names: [`${service}.${namespace}.svc`],
    });
    const server = createServer({ cert: certificate, key }, (request, response) => {
      void text(request).then((body) => {
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify(answer(reviewSchema.parse(JSON.parse(body)).request)));
      });
    });
    const host = ownAddress();
    server.listen(0, host);
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    const slice = { group: 'discovery.k8s.io', version: 'v1', plural: 'endpointslices', namespace };
    await client.create(slice, {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: service, labels: { 'kubernetes.io/service-name': service } },
      addressType: 'IPv4',
      ports: [{ name: '', port, protocol: 'TCP' }],
      endpoints: [{ addresses: [host], conditions: { ready: true } }],
    });
    const caBundle = Buffer.from(ca).toString('base64');
    for (const ref of [
      { ...MUTATING_WEBHOOK_CONFIGURATIONS, name: UPSTREAM.mutating },
      { ...VALIDATING_WEBHOOK_CONFIGURATIONS, name: UPSTREAM.validating },
    ]) {
      const path = '/webhooks/0/clientConfig/caBundle';
      const operations = [{ op: 'add', path, value: caBundle } as const];
      await client.patch(ref, { type: 'json', operations });
    }
    return new UpstreamManager(controlPlane, server, { ...slice, name: service });
  }

  async stop(): Promise<void> {
    await this.#controlPlane.client.delete(this.#slice);
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

function answer(review: Review): JsonObject {
  const patch = review.kind.kind === 'Pod' ? boostPatch(review) : [];
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: {
      uid: review.uid,
      allowed: true,
      ...(patch.length === 0
        ? {}
        : {
            patchType: 'JSONPatch',
            patch: Buffer.from(JSON.stringify(patch)).toString('base64'),
          }),
    },
  };
}

function boostPatch({ object: { metadata, spec } }: Review): readonly JsonObject[] {
  const [container] = spec.containers ?? [];
  if (container === undefined) return [];
  const { name, resources } = container;
  const [request, limit] = [resources.requests.cpu, resources.limits.cpu];
  const record = {
    timestamp: new Date().toISOString(),
    initCPURequests: { [name]: request },
    initCPULimits: { [name]: limit },
  };
  const path = '/spec/containers/0/resources';
  return [
    { op: 'replace', path: `${path}/requests/cpu`, value: doubled(request) },
    { op: 'replace', path: `${path}/limits/cpu`, value: doubled(limit) },
    { op: 'add', path: '/metadata/labels', value: { ...metadata.labels, [BOOST_KEY]: 'boost' } },
    { op: 'add', path: '/metadata/annotations', value: { [BOOST_KEY]: JSON.stringify(record) } },
  ];
}

function doubled(cpu: string): string {
  const quantity = parseQuantity(cpu);
  if (quantity === undefined) throw new Error(`${cpu} is no quantity`);
  return formatCpu(quantity * 2n);
}
