/** Where the API server is and how to prove who we are; the only reader of kubeconfig files. */
import { readFileSync } from 'node:fs';
import type { RequestOptions } from 'node:https';
import { isIP } from 'node:net';
import { delimiter, dirname, resolve } from 'node:path';
import { KubeConfig as ClientKubeConfig, loadYaml } from '@kubernetes/client-node';
import { isJsonObject } from './jsonObject';

/** `Default` is $KUBECONFIG, ~/.kube/config or the service account of the pod, in this order. */
export type KubeConfigSource =
  { readonly kind: 'Default' } | { readonly kind: 'File'; readonly path: string };

/** The client library's configuration, which also remembers how to read itself again. */
export class KubeConfig extends ClientKubeConfig {
  private readonly source: KubeConfigSource;

  constructor(source: KubeConfigSource) {
    super();
    this.source = source;
    switch (source.kind) {
      case 'Default':
        this.loadFromDefault();
        // The library reads the files after the first into configurations of its own class.
        for (const file of (process.env.KUBECONFIG ?? '').split(delimiter).filter(Boolean)) {
          this.takeTokenFiles(file);
        }
        break;
      case 'File':
        this.loadFromFile(source.path);
        break;
    }
  }

  override loadFromFile(...[file, options]: Parameters<ClientKubeConfig['loadFromFile']>): void {
    super.loadFromFile(file, options);
    this.takeTokenFiles(file);
  }

  /**
   * The library knows `tokenFile` under another name, and without it sends no credentials at all.
   * As https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/#AuthInfo says, it is read again
   * and again and comes before `token`; relative to the kubeconfig, as every path.
   */
  private takeTokenFiles(file: string): void {
    const tokenFiles = tokenFilesOf(loadYaml(readFileSync(file, 'utf8')));
    this.users = this.users.map((user) => {
      const tokenFile = tokenFiles.get(user.name);
      if (tokenFile === undefined) return user;
      const config = { tokenFile: resolve(dirname(file), tokenFile) };
      return { ...user, token: '', authProvider: { name: 'tokenFile', config } };
    });
  }

  /** A new reading of the same source, with nothing cached from this one. */
  fresh(): KubeConfig {
    return new KubeConfig(this.source);
  }
}

/** By the name of the user. */
function tokenFilesOf(config: unknown): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const users: unknown = isJsonObject(config) ? config.users : undefined;
  for (const entry of Array.isArray(users) ? users.filter(isJsonObject) : []) {
    const tokenFile = isJsonObject(entry.user) ? entry.user.tokenFile : undefined;
    if (typeof entry.name === 'string' && typeof tokenFile === 'string' && tokenFile !== '') {
      found.set(entry.name, tokenFile);
    }
  }
  return found;
}

/**
 * Reads the configuration and checks that this client can serve it.
 *
 * @throws Error naming the setting that is missing or not supported.
 */
export function loadKubeConfig(source: KubeConfigSource): KubeConfig {
  const kubeConfig = new KubeConfig(source);
  serverOf(kubeConfig);
  return kubeConfig;
}

/** What one connection and one request need; read anew whenever files may have rotated. */
export interface Credentials {
  readonly origin: string;
  /** A path before every API path, '' for most servers. */
  readonly pathPrefix: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsMaterial;
}

export interface TlsMaterial {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
}

/** @throws Error when a file is missing for the moment or a setting is not supported. */
export async function readCredentials(kubeConfig: KubeConfig): Promise<Credentials> {
  const server = serverOf(kubeConfig);
  const options: RequestOptions = {};
  if (server.protocol === 'https:') {
    await kubeConfig.applyToHTTPSOptions(options);
  }
  const tls: TlsMaterial = {
    ...pem('ca', options.ca),
    ...pem('cert', options.cert),
    ...pem('key', options.key),
    ...pem('servername', options.servername),
  };
  return {
    origin: server.origin,
    pathPrefix: server.pathname.replace(/\/+$/, ''),
    headers: requestHeaders(options),
    tls,
  };
}

/** The server's address, refused where following it would mean to drop verification. */
function serverOf(kubeConfig: ClientKubeConfig): URL {
  const cluster = kubeConfig.getCurrentCluster();
  if (cluster === null) {
    throw new Error(
      `kubeconfig: context ${JSON.stringify(kubeConfig.getCurrentContext())} names no cluster`,
    );
  }
  const where = `kubeconfig: cluster ${JSON.stringify(cluster.name)}`;
  if (!URL.canParse(cluster.server)) {
    throw new Error(`${where}: server ${JSON.stringify(cluster.server)} is not a URL`);
  }
  const server = new URL(cluster.server);
  if (cluster.proxyUrl !== undefined) {
    throw new Error(`${where}: proxy-url is not supported`);
  }
  if (server.protocol === 'https:') {
    if (cluster.skipTLSVerify) {
      throw new Error(
        `${where}: insecure-skip-tls-verify is not supported; give certificate-authority or tls-server-name`,
      );
    }
    return server;
  }
  if (server.protocol !== 'http:' || !isLoopback(server.hostname)) {
    throw new Error(
      `${where}: server must be https (http only to a loopback address, as of kubectl proxy)`,
    );
  }
  return server;
}

function isLoopback(hostname: string): boolean {
  return (
    hostname === 'localhost' ||
    hostname === '[::1]' ||
    (isIP(hostname) === 4 && hostname.startsWith('127.'))
  );
}

function requestHeaders({ headers, auth }: RequestOptions): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (typeof value === 'string' || typeof value === 'number') {
      // A token file may end with a newline, which no header may hold.
      result[name.toLowerCase()] = String(value).trim();
    }
  }
  if (typeof auth === 'string') {
    result.authorization = `Basic ${Buffer.from(auth).toString('base64')}`;
  }
  return result;
}

function pem(key: keyof TlsMaterial, value: unknown): TlsMaterial {
  if (typeof value === 'string') {
    return { [key]: value };
  }
  return Buffer.isBuffer(value) ? { [key]: value.toString('utf8') } : {};
}
