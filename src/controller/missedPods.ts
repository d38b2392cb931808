/** Finds the pods that run already, are not ready, and have missed a boost: one list for each boost. */
import { BOOST_KEY } from '../boost-engine';
import { PODS } from '../kube';
import type { JsonObject, KubeClient } from '../kube';
import type { ClusterView } from './clusterView';
import type { ObjectName } from './reconcileKey';
import { selectorQuery } from './selectorQuery';

export interface MissedPodsOptions {
  readonly client: KubeClient;
  readonly view: ClusterView;
  readonly isCandidate: (pod: JsonObject) => boolean;
  /** Hears of each candidate. */
  readonly onFound: (pod: JsonObject) => void;
}

/** As the watches: https://github.com/kubernetes/client-go/blob/v0.36.3/tools/pager/pager.go */
const PAGE_SIZE = 500;
/** As the watches: a page of 500 large pods from a server that has to read etcd. */
const LIST_TIMEOUT_MS = 30_000;

/** Pods whose containers have not all started yet are watched; the others come by this list alone. */
export class MissedPods {
  readonly #options: MissedPodsOptions;

  constructor(options: MissedPodsOptions) {
    this.#options = options;
  }

  /**
   * Lists the pods of a boost, page by page, keeping none of them.
   *
   * @throws ApiError for failures that the caller retries
   */
  async find(boost: ObjectName): Promise<void> {
    const { client, view, isCandidate, onFound } = this.#options;
    const compiled = view.boost(boost)?.compiled;
    if (compiled?.kind !== 'Valid') return;
    const selection = {
      namespace: boost.namespace,
      labelSelector: [`!${BOOST_KEY}`, selectorQuery(compiled.selector)]
        .filter((part) => part !== undefined && part !== '')
        .join(','),
      fieldSelector: 'status.phase=Running',
      limit: PAGE_SIZE,
      timeoutMs: LIST_TIMEOUT_MS,
    };
    let page = await client.list(PODS, selection);
    for (;;) {
      for (const pod of page.items.filter(isCandidate)) onFound(pod);
      if (page.continue === undefined) return;
      page = await client.list(PODS, { ...selection, continue: page.continue });
    }
  }
}
