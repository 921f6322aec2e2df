// Prints the records of a log as the reader of golang/leveldb returns them: one a line, in hex.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/golang/leveldb/record"
)

func main() {
	file, err := os.Open(os.Args[1])
	for reader := record.NewReader(file); err == nil; {
		var next io.Reader
		if next, err = reader.Next(); err != nil {
			break
		}
		var data []byte
		if data, err = io.ReadAll(next); err == nil {
			fmt.Printf("%x\n", data)
		}
	}
	if err != io.EOF {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
