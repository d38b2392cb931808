/** Finds the pods that carry the record of a boost, by their metadata alone. */
import { BOOST_KEY, readMetadata } from '../boost-engine';
import { PODS } from '../kube';
import type { KubeClient } from '../kube';
import { nameOf } from './reconcileKey';
import type { ObjectName } from './reconcileKey';

export interface MarkedPod extends ObjectName {
  /** Without the label a pod is in no watch. */
  readonly isLabelled: boolean;
}

/** As client-go: https://github.com/kubernetes/client-go/blob/v0.36.3/tools/pager/pager.go */
const PAGE_SIZE = 500;
/** A page from a server that has to read etcd. */
const PAGE_TIMEOUT_MS = 30_000;

/**
 * The pods that have a record on them and are not about to go, in the order of the list.
 *
 * @param among `Labelled` asks the API server for the pods with our label, which is cheap; `All`
 *   reads the metadata of every pod of the cluster, page by page
 * @throws ApiError; Gone where the list was changed by so much that it has to begin anew
 */
export async function listMarkedPods(
  client: Pick<KubeClient, 'list'>,
  among: 'Labelled' | 'All',
  signal?: AbortSignal,
): Promise<readonly MarkedPod[]> {
  const marked: MarkedPod[] = [];
  let token: string | undefined;
  do {
    const page = await client.list(PODS, {
      parts: 'Metadata',
      limit: PAGE_SIZE,
      timeoutMs: PAGE_TIMEOUT_MS,
      ...(among === 'Labelled' ? { labelSelector: BOOST_KEY } : {}),
      ...(token === undefined ? {} : { continue: token }),
      ...(signal === undefined ? {} : { signal }),
    });
    for (const pod of page.items) {
      const { annotations, labels, isTerminating } = readMetadata(pod);
      if (isTerminating || annotations?.has(BOOST_KEY) !== true) continue;
      marked.push({ ...nameOf(pod), isLabelled: labels?.has(BOOST_KEY) === true });
    }
    token = page.continue;
  } while (token !== undefined);
  return marked;
}
