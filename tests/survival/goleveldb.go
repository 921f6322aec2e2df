// goleveldb for verdicts.py: `goleveldb read` answers each path that it is sent with the contents of the database.
// `goleveldb write DIRECTORY FIRST` writes until it is killed, and prints the number of each write after it.
//
// Build it in a module that requires github.com/syndtr/goleveldb.
package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/opt"
)

// The values that Python has computed come as lines: number, key and value, in hexadecimal.
func write(directory string) {
	db, err := leveldb.OpenFile(directory, &opt.Options{WriteBuffer: 64 << 10})
	if err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		key, _ := hex.DecodeString(fields[1])
		value, _ := hex.DecodeString(fields[2])
		if err := db.Put(key, value, nil); err != nil {
			panic(err)
		}
		number, _ := strconv.Atoi(fields[0])
		fmt.Println(number + 1)
	}
	select {}
}

func read(directory string) string {
	db, err := leveldb.OpenFile(directory, &opt.Options{ErrorIfMissing: true})
	if err != nil {
		return "error " + err.Error()
	}
	defer db.Close()
	found := []string{}
	iter := db.NewIterator(nil, nil)
	defer iter.Release()
	for iter.Next() {
		found = append(found, hex.EncodeToString(iter.Key())+" "+hex.EncodeToString(iter.Value()))
	}
	if err := iter.Error(); err != nil {
		return "error " + err.Error()
	}
	return strings.Join(found, " ")
}

func main() {
	if os.Args[1] == "write" {
		write(os.Args[2])
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fmt.Println(strings.ReplaceAll(read(lines.Text()), "\n", " "))
	}
}
