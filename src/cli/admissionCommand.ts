/** Wires the admission process. */
import { ControllerLease, NamespaceWatcher, startAdmission } from '../admission';
import { CertificateFiles, ServingSecret } from '../certificates';
import type { CertificateSource } from '../certificates';
import { controllerLease } from './controllerLease';
import { ownNamespace } from './ownNamespace';
import type { ProcessContext, RunningProcess } from './processLife';
import type { AdmissionSettings } from './settings';

export async function startAdmissionProcess(
  context: ProcessContext<AdmissionSettings>,
): Promise<RunningProcess> {
  const lease = watchLease(context);
  const namespaces = new NamespaceWatcher({
    ...context,
    ...(lease === undefined ? {} : { controllerLease: lease }),
    defaults: context.settings.boostDefaults,
  });
  await namespaces.start();
  const server = await startAdmission({
    ...context,
    namespaces,
    certificates: certificateSource(context),
  });
  return {
    checks: {
      ...server.checks,
      live: [...server.checks.live, ...(lease === undefined ? [] : [lease.liveCheck])],
    },
    stop: async () => {
      await server.stop();
      await namespaces.close();
      await lease?.stop();
    },
  };
}

function certificateSource(context: ProcessContext<AdmissionSettings>): CertificateSource {
  const { certificates } = context.settings;
  switch (certificates.mode) {
    case 'provided':
      return new CertificateFiles({ ...context, directory: certificates.directory });
    case 'self-managed': {
      const secret = { namespace: ownNamespace(context), name: certificates.servingSecret };
      return new ServingSecret({ ...context, secret });
    }
  }
}

function watchLease(context: ProcessContext<AdmissionSettings>): ControllerLease | undefined {
  const { noControllerGraceMs: graceMs } = context.settings;
  if (graceMs === undefined) return undefined;
  const lease = new ControllerLease({
    ...context,
    lease: controllerLease(context),
    graceMs,
  });
  lease.start();
  return lease;
}
