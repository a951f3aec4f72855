//go:build linux || darwin

package main

import (
	"syscall"
	"unsafe"
)

// columns asks the terminal how wide it is.
func columns(fd uintptr) int {
	var size struct{ rows, columns, x, y uint16 }
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	if errno != 0 || size.columns == 0 {
		return usualColumns
	}
	return int(size.columns)
}
