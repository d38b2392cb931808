import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { loadKubeConfig } from '../../../src/kube';
import type { JsonObject, KubeConfig } from '../../../src/kube';
import { readCredentials } from '../../../src/kube/kubeConfig';

let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'kubeconfig-'));
});

afterAll(async () => {
  await rm(dir, { recursive: true });
});

async function load(
  cluster: JsonObject,
  user: JsonObject = {},
  context = 'test',
): Promise<KubeConfig> {
  const path = join(dir, 'kubeconfig');
  const config = {
    'current-context': context,
    clusters: [{ name: 'test', cluster }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    users: [{ name: 'test', user }],
  };
  await writeFile(path, JSON.stringify(config));
  return loadKubeConfig({ kind: 'File', path });
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const server = 'https://cluster.example:6443';

describe('a kubeconfig', () => {
  it.each<[string, JsonObject, string]>([
    [
      'switches verification off',
      { server, 'insecure-skip-tls-verify': true },
      'insecure-skip-tls-verify is not supported',
    ],
    ['speaks plain http to another machine', { server: 'http://10.0.0.1' }, 'must be https'],
    ['speaks no http at all', { server: 'ftp://127.0.0.1' }, 'must be https'],
    ['goes through a proxy', { server, 'proxy-url': 'http://p:3128' }, 'proxy-url is not supp'],
    ['has an address that is none', { server: 'cluster' }, 'server "cluster" is not a URL'],
  ])('is refused when it %s', async (_, cluster, message) => {
    await expect(load(cluster)).rejects.toThrow(message);
  });

  it('is refused when its context names no cluster', async () => {
    await expect(load({ server }, {}, 'other')).rejects.toThrow('context "other" names no cluster');
  });

  it.each(['http://127.0.0.1:8001', 'http://localhost:8001', 'http://[::1]:8001'])(
    'may speak plain http to %s, as kubectl proxy does',
    async (address) => {
      const credentials = await readCredentials(await load({ server: address }));
      expect(credentials).toMatchObject({ origin: address, pathPrefix: '', headers: {}, tls: {} });
    },
  );

  it('gives certificates, the server name and the token of its user', async () => {
    const kubeConfig = await load(
      {
        server: `${server}/k8s/`,
        'certificate-authority-data': base64('CA'),
        'tls-server-name': 'kubernetes',
      },
      {
        'client-certificate-data': base64('CERT'),
        'client-key-data': base64('KEY'),
        token: 'abc\n',
      },
    );
    expect(await readCredentials(kubeConfig)).toEqual({
      origin: server,
      pathPrefix: '/k8s',
      headers: { authorization: 'Bearer abc' },
      tls: { ca: 'CA', cert: 'CERT', key: 'KEY', servername: 'kubernetes' },
    });
  });

  it('takes the token from the file that it names, and again when it is read anew', async () => {
    const tokenFile = join(dir, 'token');
    await writeFile(tokenFile, 'first\n');
    const kubeConfig = await load({ server }, { tokenFile: 'token', token: 'other' });
    expect((await readCredentials(kubeConfig)).headers.authorization).toBe('Bearer first');
    await writeFile(tokenFile, 'second');
    expect((await readCredentials(kubeConfig.fresh())).headers.authorization).toBe('Bearer second');
    await rm(tokenFile);
    await expect(readCredentials(kubeConfig.fresh())).rejects.toThrow(tokenFile);
  });

  it('takes the token from a file that a later file of $KUBECONFIG names', async () => {
    const before = process.env.KUBECONFIG;
    const [main, users] = [join(dir, 'main'), join(dir, 'users')];
    await writeFile(join(dir, 'token'), 'mine');
    await writeFile(
      main,
      JSON.stringify({
        'current-context': 'test',
        clusters: [{ name: 'test', cluster: { server } }],
        contexts: [{ name: 'test', context: { cluster: 'test', user: 'me' } }],
        users: [],
      }),
    );
    await writeFile(
      users,
      JSON.stringify({ users: [{ name: 'me', user: { tokenFile: 'token' } }] }),
    );
    process.env.KUBECONFIG = [main, users].join(delimiter);
    try {
      const kubeConfig = loadKubeConfig({ kind: 'Default' });
      expect((await readCredentials(kubeConfig)).headers.authorization).toBe('Bearer mine');
    } finally {
      if (before === undefined) delete process.env.KUBECONFIG;
      else process.env.KUBECONFIG = before;
    }
  });

  it('reads its source anew when asked to', async () => {
    const before = await load({ server }, { token: 'old' });
    await load({ server }, { token: 'new' });
    expect((await readCredentials(before)).headers.authorization).toBe('Bearer old');
    expect((await readCredentials(before.fresh())).headers.authorization).toBe('Bearer new');
  });
});
