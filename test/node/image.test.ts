/** The image as scripts/image.mjs makes it: what is in it, and that it runs with next to no rights. */
import { chmod, copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { eventually } from '../support/eventually';
import { NODE_PATIENCE_MS, NodeCluster, setting } from '../support/node/cluster';
import { ImageTree } from '../support/node/imageTree';
import { freePort } from '../support/processes';

const cluster = new NodeCluster();
let image: ImageTree;
let namespace: string;

beforeAll(async () => {
  image = await ImageTree.unpack(setting('NODE_TEST_IMAGE_TAR'));
  namespace = await cluster.namespace('image');
  const kubeconfig = join(image.root, 'etc', 'kubeconfig');
  await copyFile(cluster.kubeconfigPath, kubeconfig);
  await chmod(kubeconfig, 0o644);
});

afterAll(async () => {
  await cluster.removeNamespace(namespace);
  await cluster.client.close();
  await image.remove();
});

describe('the image', () => {
  it('has the program, its licenses and its bill of materials, a Node, and no other program', async () => {
    const files = await image.files();
    expect(files.filter((path) => path.startsWith('/app/')).sort()).toEqual([
      '/app/LICENSE',
      '/app/THIRD-PARTY-NOTICES.txt',
      '/app/sbom.cdx.json',
      '/app/startup-cpu-boost.cjs',
    ]);
    expect(files.filter((path) => path.includes('/bin/'))).toEqual(['/usr/local/bin/node']);
  });

  it('says where its bill of materials is, which names each package with its notice', async () => {
    const path = image.config.Labels['startup-cpu-boost.sbom'] ?? '';
    const { components } = billSchema.parse(JSON.parse(await image.read(path)));
    const names = components.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['re2js', 'koa', 'pino', 'undici', 'zod']));
    const notices = await image.read('/app/THIRD-PARTY-NOTICES.txt');
    for (const { name, version } of components) expect(notices).toContain(`\n${name} ${version} (`);
  });

  it('prints its usage and nothing else when it is run without a command', async () => {
    expect(await image.start().ended).toEqual({
      code: 0,
      stdout: expect.stringContaining('usage: startup-cpu-boost COMMAND'),
      stderr: '',
    });
  });

  it.each(['admission', 'controller'])(
    'starts as %s without a right and without a place to write to, and ends when it is told',
    async (command) => {
      const ports = [await freePort(), await freePort(), await freePort()];
      const [health = 0, metrics = 0, webhook = 0] = ports;
      const running = image.start([command], {
        KUBECONFIG: '/etc/kubeconfig',
        POD_NAMESPACE: namespace,
        HEALTH_PROBE_BIND_ADDR: `127.0.0.1:${health}`,
        METRICS_PROBE_BIND_ADDR: `127.0.0.1:${metrics}`,
        WEBHOOK_BIND_ADDR: '127.0.0.1',
        WEBHOOK_PORT: String(webhook),
        WEBHOOK_DRAIN_SECONDS: '0',
      });
      try {
        await eventually(async () => {
          const response = await fetch(`http://127.0.0.1:${health}/livez`);
          expect(await response.text()).toContain('ok');
        }, NODE_PATIENCE_MS);
      } finally {
        const { code, stderr } = await running.stop();
        expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      }
    },
  );

  it.each(['admission', 'controller'])(
    'ends as %s with the name of a setting that is wrong',
    async (command) => {
      const { code, stderr } = await image.start([command], { ZAP_LOG_LEVEL: 'loud' }).ended;
      expect(code).toBe(2);
      expect(stderr).toContain('ZAP_LOG_LEVEL');
      expect(stderr).toContain('loud');
    },
  );
});

const billSchema = z.looseObject({
  bomFormat: z.literal('CycloneDX'),
  components: z.array(z.looseObject({ name: z.string(), version: z.string(), purl: z.string() })),
});
