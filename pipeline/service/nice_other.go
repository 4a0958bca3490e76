//go:build !linux

package service

// beNice does nothing: the setting is Linux's.
func beNice(int) error { return nil }
