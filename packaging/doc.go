// Package packaging has the parts of a release besides the programs: units of systemd, a Debian package, steps for an
// image of a container, configurations of nginx and Caddy, rules of Prometheus, a dashboard of Grafana. The command
// release in it builds all.
package packaging
