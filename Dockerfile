# Builds with the Bun that package.json and bun.lock pin; the binary contains it. Podman and Buildah
# need the whole names of images.
FROM docker.io/oven/bun:1.4.5-slim AS build
WORKDIR /build
COPY package.json bun.lock bunfig.toml ./
# The build needs neither the development packages nor a second Bun.
RUN bun install --frozen-lockfile --production --omit=optional
COPY tsconfig.json ./
COPY drizzle ./drizzle
COPY scripts/build.ts ./scripts/
COPY src ./src
RUN bun scripts/build.ts

FROM docker.io/library/debian:12.12-slim
COPY --from=build /build/dist/hopcode /usr/local/bin/hopcode
# A new volume takes its owner from this folder.
RUN install -d -o 65532 -g 65532 -m 0750 /data
ENV DATA_DIR=/data
VOLUME /data
# With https of its own, 80 and 443: docs/operations/docker.md.
EXPOSE 80 443 3000
# By number, so that Kubernetes can verify that it is not root.
USER 65532:65532
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
  CMD ["/usr/local/bin/hopcode", "health"]
ENTRYPOINT ["/usr/local/bin/hopcode"]
CMD ["serve"]
