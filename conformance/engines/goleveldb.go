// Prints the records of a log as goleveldb's reader returns them: one a line, in hex. The first
// argument says whether it is to be strict.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/syndtr/goleveldb/leveldb/journal"
)

type dropper struct{}

func (dropper) Drop(err error) { fmt.Fprintln(os.Stderr, err) }

func main() {
	file, err := os.Open(os.Args[2])
	for reader := journal.NewReader(file, dropper{}, os.Args[1] == "strict", true); err == nil; {
		var record io.Reader
		if record, err = reader.Next(); err != nil {
			break
		}
		data, broken := io.ReadAll(record)
		if broken == nil {
			fmt.Printf("%x\n", data)
		} else if broken != io.ErrUnexpectedEOF {
			err = broken
		}
	}
	if err != io.EOF {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
