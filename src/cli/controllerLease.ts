/** The one Lease of the controllers: they elect by it, and admission sees by it that one is there. */
import type { KubeConfig } from '../kube';

/** Where neither POD_NAMESPACE nor the kubeconfig names one. */
const FALLBACK_NAMESPACE = 'default';

/** @param namespace as it is set; undefined where it is that of the kubeconfig */
export function controllerLease(
  namespace: string | undefined,
  kubeConfig: KubeConfig,
): { readonly namespace: string; readonly name: string } {
  const context = kubeConfig.getContextObject(kubeConfig.getCurrentContext());
  return {
    namespace: namespace ?? context?.namespace ?? FALLBACK_NAMESPACE,
    name: 'startup-cpu-boost-controller',
  };
}
