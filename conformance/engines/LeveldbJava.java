// Prints the records of a log as the reader of leveldb-java returns them: one a line, in hex.

import java.io.FileInputStream;
import java.util.HexFormat;
import org.iq80.leveldb.impl.LogMonitor;
import org.iq80.leveldb.impl.LogReader;
import org.iq80.leveldb.util.Slice;

class LeveldbJava {
    static class Printer implements LogMonitor {
        public void corruption(long bytes, String reason) {
            System.err.println(reason);
        }

        public void corruption(long bytes, Throwable reason) {
            System.err.println(reason);
        }
    }

    public static void main(String[] arguments) throws Exception {
        try (var file = new FileInputStream(arguments[0])) {
            var reader = new LogReader(file.getChannel(), new Printer(), true, 0);
            for (Slice record = reader.readRecord(); record != null; record = reader.readRecord()) {
                System.out.println(HexFormat.of().formatHex(record.getBytes()));
            }
        }
    }
}
