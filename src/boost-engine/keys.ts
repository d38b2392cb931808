/** The names under which a boost is written on a pod, the same as google/kube-startup-cpu-boost's. */

/** Key of the label (value: the boost's name) and of the annotation (value: the record). */
export const BOOST_KEY = 'autoscaling.x-k8s.io/startup-cpu-boost';

/** Annotation with the reason code of a pod that a boost matches and that is left as it was. */
export const SKIPPED_KEY = `${BOOST_KEY}-skipped`;

/**
 * Annotation with the reason code of the end of a boost that a pod has had: none is given a second
 * one in place.
 */
export const ENDED_KEY = `${BOOST_KEY}-ended`;

/** Annotation that the kubelet puts on the mirror of a static pod. */
export const MIRROR_POD_KEY = 'kubernetes.io/config.mirror';
