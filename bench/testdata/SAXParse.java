import java.io.File;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import javax.xml.parsers.SAXParser;
import javax.xml.parsers.SAXParserFactory;
import org.xml.sax.Attributes;
import org.xml.sax.helpers.DefaultHandler;

// Parses a file several times with the SAX parser of the JDK, namespace-aware,
// and does nothing with it but count its elements. Prints the processor time of
// the best round in nanoseconds, and the number of elements.
//
// The time is that of the parsing thread alone: what the virtual machine's
// compiler and collector do beside it is left out.
//
//     java SAXParse.java FILE ROUNDS
public class SAXParse {
    static class Counter extends DefaultHandler {
        long elements;

        @Override
        public void startElement(String uri, String local, String name, Attributes attributes) {
            elements++;
        }
    }

    public static void main(String[] args) throws Exception {
        SAXParserFactory factory = SAXParserFactory.newInstance();
        factory.setNamespaceAware(true);
        factory.setFeature("http://apache.org/xml/features/nonvalidating/load-external-dtd", false);
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long best = Long.MAX_VALUE;
        Counter counter = null;
        for (int i = 0; i < Integer.parseInt(args[1]); i++) {
            SAXParser parser = factory.newSAXParser();
            counter = new Counter();
            long start = threads.getCurrentThreadCpuTime();
            parser.parse(new File(args[0]), counter);
            best = Math.min(best, threads.getCurrentThreadCpuTime() - start);
        }
        System.out.println(best + " " + counter.elements);
    }
}
