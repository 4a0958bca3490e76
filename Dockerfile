# One image for all services and the operator's tool; the command chooses.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# The image has no clone to take it from: docker build --build-arg VERSION=$(git describe --always)
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-X github.com/plumbline/plumbline/pipeline/service.version=$VERSION" -o /out/ ./cmd/...

FROM debian:bookworm-slim
# Everything runs as this user, and owns only the directory of its volume.
RUN useradd --system --uid 10001 --home-dir /var/lib/plumbline --create-home plumbline
COPY --from=build /out/ /usr/local/bin/
# The authorities that connections to S3, a time stamping authority and servers of your own are checked with.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY deploy/compose/first-start.sh /usr/local/bin/plumbline-first-start
USER plumbline
WORKDIR /var/lib/plumbline
VOLUME /var/lib/plumbline
CMD ["plumbline", "--help"]
