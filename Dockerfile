# The image holds one static binary, certificates for talking to Redis, PostgreSQL and
# key servers over TLS, and nothing else: no shell, no package manager, no root.

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o /foyer ./cmd/foyer

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /foyer /foyer
USER 65532:65532
ENV FOYER_HTTP_ADDR=0.0.0.0:8080
EXPOSE 8080
ENTRYPOINT ["/foyer"]
CMD ["help"]
