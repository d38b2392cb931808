/** The mutating webhook for pods, under the names that google/kube-startup-cpu-boost gave it. */

export const POD_WEBHOOK = {
  name: 'cpuboost.autoscaling.x-k8s.io',
  path: '/mutate-v1-pod',
} as const;
