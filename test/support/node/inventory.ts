/** Every object of a cluster, to see what an uninstall has left behind. */
import { z } from 'zod';
import type { NodeCluster } from './cluster';

const listSchema = z.looseObject({
  items: z.array(
    z.looseObject({
      kind: z.string(),
      metadata: z.looseObject({ name: z.string(), namespace: z.string().default('') }),
    }),
  ),
});

/** What the cluster itself writes all the time. */
const OF_THE_CLUSTER = ['events', 'events.events.k8s.io', 'componentstatuses'];

/** `Kind namespace/name` of every object that can be listed. */
export async function inventory(cluster: NodeCluster): Promise<ReadonlySet<string>> {
  const output = await cluster.kubectl('api-resources', '--verbs=list', '-o', 'name');
  const resources = output
    .split('\n')
    .filter((name) => name !== '' && !OF_THE_CLUSTER.includes(name));
  const json = await cluster.kubectl('get', resources.join(','), '--all-namespaces', '-o', 'json');
  const { items } = listSchema.parse(JSON.parse(json));
  return new Set(
    items.map(({ kind, metadata }) => `${kind} ${metadata.namespace}/${metadata.name}`),
  );
}
