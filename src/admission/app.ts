/** The two webhooks over HTTP: what is no review is refused here, everything else is judged. */
import type { IncomingMessage } from 'node:http';
import Router from '@koa/router';
import Koa from 'koa';
import type { Context } from 'koa';
import type { Clock } from '../kube';
import type { Logger, Metrics } from '../observability';
import { POD_WEBHOOK } from '../resources';
import { BodyReader } from './bodyReader';
import { validateBoost } from './boostValidation';
import type { NamespaceSource } from './namespaceWatcher';
import { mutatePod } from './podMutation';
import { answerReview, refuse } from './reviewEndpoint';
import type { Reply, ReviewEndpoint } from './reviewEndpoint';

export interface AdmissionAppOptions {
  readonly namespaces: NamespaceSource;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly clock: Clock;
}

export const MUTATE_PATH: string = POD_WEBHOOK.path;
export const VALIDATE_PATH = '/validate-autoscaling-x-k8s-io-v1alpha1-startupcpuboost';

/**
 * The API server takes objects of up to 3 MiB (MaxRequestBodyBytes in apiserver/pkg/server/config.go);
 * the review of an update carries the object and its old state, and 1 MiB is room for what the API
 * server fills in and for the review around them.
 */
const MAX_BODY_BYTES = (2 * 3 + 1) * 2 ** 20;

/**
 * Reviews of usual pods have 10 to 30 kB, and an API server works on 600 requests at one moment:
 * three of them need 54 MB at most. Without a bound, everybody who reaches the port could fill the
 * memory with unfinished bodies.
 */
const MAX_BODY_BYTES_TOGETHER = 64 * 2 ** 20;

/** The API server gives up on a webhook after 30 s at most, and on ours after 2 s and 5 s. */
const BODY_TIMEOUT_MS = 10_000;

export function admissionApp(options: AdmissionAppOptions): Koa {
  const { namespaces, logger, clock } = options;
  const reader = new BodyReader(
    {
      bytes: MAX_BODY_BYTES,
      bytesTogether: MAX_BODY_BYTES_TOGETHER,
      milliseconds: BODY_TIMEOUT_MS,
    },
    clock,
  );
  const router = new Router();
  for (const endpoint of reviewEndpoints({ namespaces, clock })) {
    router.post(endpoint.path, async (context) => {
      observe(context, endpoint, options);
      const reply = await replyTo(context.req, reader, endpoint);
      writeDown(reply, endpoint, options);
      write(context, reply);
    });
  }
  const app = new Koa();
  // A client that went away, or sent what is no HTTP; Koa would print it. The message only: the error
  // carries what was received, which can be the manifests of others.
  app.on('error', (error: unknown) => {
    const detail = error instanceof Error ? error.message : String(error);
    logger.warn({ detail }, 'an answer could not be delivered');
  });
  app.use(router.routes());
  app.use(router.allowedMethods());
  return app;
}

/** The webhooks without HTTP: each a function from the text of a review to its answer. */
export function reviewEndpoints({
  namespaces,
  clock,
}: Pick<AdmissionAppOptions, 'namespaces' | 'clock'>): readonly ReviewEndpoint[] {
  return [
    {
      path: MUTATE_PATH,
      judge: (request) => mutatePod(request, namespaces.view(request.namespace), clock.now()),
      // Do no harm: a pod that would be created without us is created with us.
      withoutJudgement: (status) => ({ allowed: true, status }),
    },
    {
      path: VALIDATE_PATH,
      judge: (request) => validateBoost(request, namespaces.view(request.namespace).boosts),
      // As failurePolicy: Fail: every process reads every stored boost, so one that we cannot even
      // judge must not be stored.
      withoutJudgement: ({ code, message }) => ({
        allowed: false,
        status: { code, reason: code === 500 ? 'InternalError' : 'BadRequest', message },
      }),
    },
  ];
}

async function replyTo(
  request: IncomingMessage,
  reader: BodyReader,
  endpoint: ReviewEndpoint,
): Promise<Reply> {
  const [mediaType = ''] = (request.headers['content-type'] ?? '').split(';');
  if (mediaType.trim().toLowerCase() !== 'application/json') {
    return refuse(415, 'UnsupportedMediaType', 'Content-Type must be application/json');
  }
  if ((request.headers['content-encoding'] ?? 'identity') !== 'identity') {
    return refuse(415, 'UnsupportedMediaType', 'the body must not be compressed');
  }
  const body = await reader.read(request);
  return body.kind === 'Refused'
    ? refuse(body.status, body.code, body.why)
    : answerReview(body.text, endpoint);
}

function write(context: Context, reply: Reply): void {
  switch (reply.kind) {
    case 'Review':
      context.type = 'application/json';
      context.body = JSON.stringify(reply.body);
      return;
    case 'Refused':
      // Otherwise Node would go on reading what is left of the body.
      context.set('Connection', 'close');
      context.status = reply.status;
      context.type = 'text/plain';
      context.body = `${reply.why}\n`;
  }
}

function writeDown(
  { note }: Reply,
  { path }: ReviewEndpoint,
  { logger, metrics }: AdmissionAppOptions,
): void {
  metrics.admissionRequests.inc({ path, result: note.result });
  logger[note.level]({ path, result: note.result, ...note.fields }, note.message);
}

function observe(
  { res }: Context,
  { path }: ReviewEndpoint,
  { metrics, clock }: AdmissionAppOptions,
): void {
  const start = clock.monotonic();
  res.once('close', () => {
    metrics.admissionSeconds.observe({ path }, (clock.monotonic() - start) / 1_000);
  });
}
