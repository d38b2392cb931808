/** What `kubectl get` shows: the table that the API server makes from the printer columns. */
import { request } from 'node:https';
import type { RequestOptions } from 'node:https';
import { fieldsOf, itemsOf, textOf } from '../../src/boost-engine';
import { loadKubeConfig } from '../../src/kube';

export interface ApiTable {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
}

/** @param path of an object or a collection, such as `/api/v1/namespaces/default/pods` */
export async function getTable(kubeconfigPath: string, path: string): Promise<ApiTable> {
  const table = fieldsOf(await get(kubeconfigPath, path));
  // Columns of priority 1 are for `-o wide`.
  const shown = itemsOf(table.get('columnDefinitions')).flatMap((column, index) =>
    fieldsOf(column).get('priority') === 0
      ? [{ index, name: textOf(fieldsOf(column).get('name')) ?? '' }]
      : [],
  );
  return {
    columns: shown.map(({ name }) => name),
    rows: itemsOf(table.get('rows')).map((row) => {
      const cells = itemsOf(fieldsOf(row).get('cells'));
      return shown.map(({ index }) => cells[index]);
    }),
  };
}

async function get(kubeconfigPath: string, path: string): Promise<unknown> {
  const kubeConfig = loadKubeConfig({ kind: 'File', path: kubeconfigPath });
  const options: RequestOptions = {};
  await kubeConfig.applyToHTTPSOptions(options);
  const url = `${kubeConfig.getCurrentCluster()?.server ?? ''}${path}`;
  return new Promise((resolve, reject) => {
    const outgoing = request(url, options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        if (response.statusCode === 200) resolve(JSON.parse(text));
        else reject(new Error(`GET ${path}: ${response.statusCode ?? 'no status'}: ${text}`));
      });
    });
    outgoing.setHeader('accept', 'application/json;as=Table;v=v1;g=meta.k8s.io');
    outgoing.on('error', reject);
    outgoing.end();
  });
}
