# The image of both processes and of every command:
#   docker buildx build --platform linux/amd64,linux/arm64 --tag NAME:TAG .
# Line by line in docs/adr/0014-image.md.
ARG BASE_IMAGE=node:24-slim

# The bundle is JavaScript, the same for every platform: built once, without emulation.
FROM --platform=$BUILDPLATFORM ${BASE_IMAGE} AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN node scripts/image.mjs layout /layout

FROM ${BASE_IMAGE}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Startup CPU Boost" \
      org.opencontainers.image.description="Raises the CPU of Kubernetes containers while they start and gives the exact original back, without a restart." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      startup-cpu-boost.sbom="/app/sbom.cdx.json"
COPY --from=build /layout/app /app
USER 65532:65532
EXPOSE 8080 8081 9443
ENTRYPOINT ["/usr/local/bin/node", "/app/startup-cpu-boost.cjs"]
CMD ["--help"]
