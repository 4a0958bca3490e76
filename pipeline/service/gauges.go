package service

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/pipeline/durable"
)

// ShowCertificate shows in gauge plumbline_certificate_expiry_seconds how long the certificates
// are valid that this process read from the file of a setting. The first one to expire counts. An
// empty path shows nothing. A file that is replaced counts after a restart, as does its content.
func (e *Env) ShowCertificate(setting, path string) error {
	if path == "" {
		return nil
	}
	until, err := firstExpiry(path)
	if err != nil {
		return fmt.Errorf("%s: %w", setting, err)
	}
	err = e.Metrics.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "plumbline_certificate_expiry_seconds",
		Help:        "Seconds until the first certificate in the file of a setting expires.",
		ConstLabels: prometheus.Labels{"setting": setting},
	}, func() float64 { return time.Until(until).Seconds() }))
	if _, again := errors.AsType[prometheus.AlreadyRegisteredError](err); again {
		return nil // another connection of the stage uses the same file
	}
	return err
}

// firstExpiry returns when the first certificate of a PEM file expires.
func firstExpiry(path string) (first time.Time, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return time.Time{}, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return time.Time{}, fmt.Errorf("%s: %w", path, err)
		}
		if first.IsZero() || certificate.NotAfter.Before(first) {
			first = certificate.NotAfter
		}
	}
	if first.IsZero() {
		return time.Time{}, fmt.Errorf("%s: has no certificate in PEM", path)
	}
	return first, nil
}

// Directory is a directory whose disk is shown. Its name is the label of the gauge.
type Directory struct{ Name, Path string }

// spaceEvery is how often the free space of disks is read.
const spaceEvery = 10 * time.Second

// ShowSpace updates the gauges plumbline_disk_free_bytes and plumbline_disk_size_bytes until ctx
// ends. A disk that cannot be asked, or has not answered for spaceEvery, has no value. A scrape
// does not wait, and neither does the end.
func ShowSpace(ctx context.Context, metrics prometheus.Registerer, directories ...Directory) error {
	free := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "plumbline_disk_free_bytes", Help: "Free space, for this process, of the disk that holds a directory.",
	}, []string{"directory"})
	size := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "plumbline_disk_size_bytes", Help: "Size of the disk that holds a directory.",
	}, []string{"directory"})
	if err := errors.Join(metrics.Register(free), metrics.Register(size)); err != nil {
		return fmt.Errorf("metrics of disks: %w", err)
	}
	actors := make([]func(context.Context) error, len(directories))
	for i, d := range directories {
		actors[i] = func(ctx context.Context) error {
			followSpace(ctx, d.Path, func(s *space) {
				if s == nil {
					free.DeleteLabelValues(d.Name)
					size.DeleteLabelValues(d.Name)
					return
				}
				free.WithLabelValues(d.Name).Set(float64(s.free))
				size.WithLabelValues(d.Name).Set(float64(s.size))
			})
			return nil
		}
	}
	return Group(ctx, actors...)
}

// space is the state of a disk.
type space struct{ free, size int64 }

// followSpace calls show with the state of a directory's disk at intervals until ctx ends, and
// with nil where it is unknown. A disk that hangs is not asked again before it answers.
func followSpace(ctx context.Context, path string, show func(*space)) {
	answers := make(chan *space, 1)
	tick := time.NewTicker(spaceEvery)
	defer tick.Stop()
	for asking := false; ; {
		if !asking {
			asking = true
			go func() {
				free, size, err := durable.Space(path)
				if err != nil {
					answers <- nil // readiness reports a directory that cannot be used
					return
				}
				answers <- &space{free: free, size: size}
			}()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			show(nil)
		case answer := <-answers:
			asking = false
			show(answer)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}
}
