/** StartupCPUBoosts of one namespace on a real API server: what it accepts, what it refuses and with what words. */
import { randomUUID } from 'node:crypto';
import { request } from 'node:https';
import type { RequestOptions } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import { fieldsOf, itemsOf } from '../../src/boost-engine';
import { ApiError, NAMESPACES, STARTUP_CPU_BOOSTS, loadKubeConfig } from '../../src/kube';
import type { FailureCause, JsonObject, ObjectRef } from '../../src/kube';
import { customResourceDefinition } from '../../src/resources/customResourceDefinition';
import type { Schema } from '../../src/resources/schemaType';
import { startControlPlane } from './controlPlane';

export type Verdict =
  | { readonly kind: 'Accepted'; readonly object: JsonObject }
  /** `causes` are without the remarks that only repeat others. */
  | { readonly kind: 'Refused'; readonly causes: readonly FailureCause[] };

export interface BoostApi {
  create(manifest: JsonObject, mode?: 'dry run'): Promise<Verdict>;
  merge(name: string, body: JsonObject, subresource?: 'status'): Promise<Verdict>;
  /** What `kubectl get` shows of one boost. */
  table(name: string): Promise<{ columns: unknown[]; cells: readonly unknown[] }>;
  /** Replaces the schema of the definition. */
  define(schema: Schema): Promise<void>;
  /** Tries the manifest until this is the verdict: a changed definition is in force a moment later. */
  until(manifest: JsonObject, kind: Verdict['kind']): Promise<void>;
  stop(): Promise<void>;
}

/** Some 20 s; a definition is in force within one. */
const ATTEMPTS = 1_000;

/** Causes that only repeat: rules were left out since a value is not of its type. */
const REMARKS = ['some validation rules were not checked', 'Checked value must be of type'];

export async function startBoostApi(): Promise<BoostApi> {
  const controlPlane = await startControlPlane({ crds: true });
  const { client, kubeconfigPath } = controlPlane;
  const namespace = `validation-${randomUUID().slice(0, 8)}`;
  const boosts = { ...STARTUP_CPU_BOOSTS, namespace };
  await client.create(NAMESPACES, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: namespace },
  });

  const api: BoostApi = {
    create: (manifest, mode) =>
      verdictOf(client.create(boosts, manifest, { dryRun: mode === 'dry run' })),
    merge: (name, body, subresource) => {
      const ref: ObjectRef = {
        ...boosts,
        name,
        ...(subresource === undefined ? {} : { subresource }),
      };
      return verdictOf(client.patch(ref, { type: 'merge', body }));
    },
    async table(name) {
      const { group, version, plural } = boosts;
      const path = `/apis/${group}/${version}/namespaces/${namespace}/${plural}/${name}`;
      const table = fieldsOf(await getTable(kubeconfigPath, path));
      const columns = itemsOf(table.get('columnDefinitions'));
      return {
        columns: columns.map((column) => fieldsOf(column).get('name')),
        cells: itemsOf(fieldsOf(itemsOf(table.get('rows'))[0]).get('cells')),
      };
    },
    async define(schema) {
      const { metadata, spec } = customResourceDefinition();
      const versions = spec.versions.map((version) => ({
        ...version,
        schema: { openAPIV3Schema: schema },
      }));
      const definition: ObjectRef = {
        group: 'apiextensions.k8s.io',
        version: 'v1',
        plural: 'customresourcedefinitions',
        name: metadata.name,
      };
      await client.patch(definition, { type: 'merge', body: { spec: { versions } } });
    },
    async until(manifest, kind) {
      for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
        if ((await api.create(manifest, 'dry run')).kind === kind) return;
        await delay(20);
      }
      throw new Error(`not ${kind} in ${ATTEMPTS} attempts: ${JSON.stringify(manifest)}`);
    },
    async stop() {
      await client.delete({ ...NAMESPACES, name: namespace });
      await controlPlane.stop();
    },
  };
  return api;
}

async function verdictOf(call: Promise<JsonObject>): Promise<Verdict> {
  try {
    return { kind: 'Accepted', object: await call };
  } catch (error) {
    if (!(error instanceof ApiError) || error.failure.kind !== 'Invalid') throw error;
    const causes = error.failure.causes.filter(
      ({ message }) => !REMARKS.some((remark) => message.includes(remark)),
    );
    return { kind: 'Refused', causes };
  }
}

/** As kubectl asks for it; the client of the operator never wants tables. */
async function getTable(kubeconfigPath: string, path: string): Promise<unknown> {
  const kubeConfig = loadKubeConfig({ kind: 'File', path: kubeconfigPath });
  const options: RequestOptions = {};
  await kubeConfig.applyToHTTPSOptions(options);
  const url = `${kubeConfig.getCurrentCluster()?.server ?? ''}${path}`;
  return new Promise((done, fail) => {
    const outgoing = request(url, options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', fail);
      response.on('end', () => {
        const body: unknown = JSON.parse(Buffer.concat(chunks).toString());
        done(body);
      });
    });
    outgoing.setHeader('accept', 'application/json;as=Table;v=v1;g=meta.k8s.io');
    outgoing.on('error', fail);
    outgoing.end();
  });
}
