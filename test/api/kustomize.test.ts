/** The chart for people who use kustomize: the commands of docs/install.md, and what they make. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { NAMESPACES } from '../../src/kube';
import { startControlPlane } from '../support/controlPlane';
import type { ControlPlane } from '../support/controlPlane';
import { followGuide } from '../support/guide';
import { kubectl } from '../support/kubectl';
import { objectOf } from '../support/objectAt';

const NAMESPACE = 'startup-cpu-boost';

let controlPlane: ControlPlane;
let folder: string;

beforeAll(async () => {
  controlPlane = await startControlPlane({ crds: false });
  folder = await mkdtemp(join(tmpdir(), 'startup-cpu-boost-kustomize-'));
  const metadata = { name: NAMESPACE };
  await controlPlane.client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata });
});

afterAll(async () => {
  await controlPlane.stop();
  await rm(folder, { recursive: true, force: true });
});

describe('kustomize', () => {
  it('takes what Helm renders, with the CRD and without hooks, and the API server takes it twice', async () => {
    const { kubeconfigPath } = controlPlane;
    const guide = 'docs/install.md';
    const env = { REPO: process.cwd() };
    await followGuide({ guide, step: 'kustomize', folder, kubeconfigPath, env });

    const all = join(folder, 'all.yaml');
    const objects = parseAllDocuments(await readFile(all, 'utf8')).map((document) =>
      objectOf(document.toJSON()),
    );
    const kinds = objects.map(({ kind }) => kind);
    expect(kinds).toEqual(
      expect.arrayContaining([
        'CustomResourceDefinition',
        'Deployment',
        'MutatingWebhookConfiguration',
        'ValidatingAdmissionPolicy',
      ]),
    );
    expect(kinds).not.toContain('Job');
    const admission = objects.find(
      ({ kind, metadata }) =>
        kind === 'Deployment' && objectOf(metadata).name === 'startup-cpu-boost-admission',
    );
    expect(admission).toMatchObject({ spec: { replicas: 3 } });

    const apply = ['apply', '--server-side', '--filename', all];
    expect(await kubectl(kubeconfigPath, ...apply)).toMatchObject({ code: 0 });
    expect(await kubectl(kubeconfigPath, ...apply)).toMatchObject({ code: 0 });
  });
});
