/** Wires the admission process. */
import { NamespaceWatcher, startAdmission } from '../admission';
import { CertificateFiles, ServingSecret } from '../certificates';
import type { CertificateSource } from '../certificates';
import { ownNamespace } from './ownNamespace';
import type { ProcessContext, RunningProcess } from './processLife';
import type { AdmissionSettings } from './settings';

export async function startAdmissionProcess(
  context: ProcessContext<AdmissionSettings>,
): Promise<RunningProcess> {
  const namespaces = new NamespaceWatcher(context);
  await namespaces.start();
  const server = await startAdmission({
    ...context,
    namespaces,
    certificates: certificateSource(context),
  });
  return {
    checks: server.checks,
    stop: async () => {
      await server.stop();
      await namespaces.close();
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
