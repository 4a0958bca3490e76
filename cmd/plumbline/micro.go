package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/aivs/micro"
	"github.com/plumbline/plumbline/pipeline/keyfile"
	"github.com/plumbline/plumbline/pipeline/keystore"
)

type microCommands struct {
	Sign   microSignCommand   `cmd:"" help:"Make the AIVS-Micro proof of one scan of one URL."`
	Verify microVerifyCommand `cmd:"" help:"Verify an AIVS-Micro proof; exits 0 on PASS alone."`
}

type microSignCommand struct {
	URL     string    `arg:"" name:"url" help:"The URL that was scanned."`
	DOM     string    `placeholder:"FILE" xor:"dom" required:"" help:"The scanned content; its SHA-256 goes into the proof."`
	DOMHash string    `name:"dom-hash" placeholder:"SHA256" xor:"dom" required:"" help:"Its SHA-256, instead."`
	Scanner string    `required:"" placeholder:"FILE|SHA256" help:"The scanner's program, or its SHA-256."`
	Origin  string    `default:"local" help:"Where the scan was made from."`
	Time    time.Time `placeholder:"TIME" help:"When (RFC 3339); now by default."`
	Key     string    `placeholder:"FILE" type:"path" help:"Key file to sign with; without it the proof is unsigned."`
	TXT     bool      `name:"txt" help:"Print the strings of a DNS TXT record instead of JSON."`
}

// Run prints the proof.
func (c *microSignCommand) Run(ctx context.Context, con *console) error {
	scan := micro.Scan{URL: c.URL, DOMHash: c.DOMHash, Origin: c.Origin, At: c.Time}
	if scan.At.IsZero() {
		scan.At = time.Now()
	}
	var err error
	if c.DOM != "" {
		if scan.DOMHash, err = hashFile(ctx, c.DOM); err != nil {
			return err
		}
	}
	if scan.ScannerVersionHash, err = hashOrFile(ctx, c.Scanner); err != nil {
		return err
	}
	proof, err := micro.New(scan)
	if err != nil {
		return usagef("no proof can be made of this scan:\n%w", err)
	}
	if c.Key != "" {
		key, err := keyfile.Load(c.Key)
		if err == nil {
			err = keystore.Slot{Path: c.Key, Purpose: keyring.Micro}.Permit(key)
		}
		if err != nil {
			return usageError{err}
		}
		proof.Sign(key)
	}
	if !c.TXT {
		return writeJSON(con.out, proof)
	}
	return writeTXT(con.out, proof)
}

func writeTXT(w io.Writer, proof *micro.Proof) error {
	parts, err := proof.TXT()
	if err != nil {
		return usageError{err}
	}
	_, err = fmt.Fprintln(w, micro.ZoneFile(parts))
	return err
}

// hashOrFile returns a given SHA-256 unchanged, or computes that of a file.
func hashOrFile(ctx context.Context, given string) (string, error) {
	if b, err := hex.DecodeString(strings.TrimPrefix(given, "sha256:")); err == nil && len(b) == sha256.Size {
		return given, nil
	}
	return hashFile(ctx, given)
}

func hashFile(ctx context.Context, path string) (string, error) {
	file, err := openPlain(ctx, path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
