import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayOutputStream;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;
import org.apache.jena.query.Dataset;
import org.apache.jena.query.Query;
import org.apache.jena.query.QueryExecution;
import org.apache.jena.query.QueryExecutionFactory;
import org.apache.jena.query.QueryFactory;
import org.apache.jena.query.ResultSetFormatter;
import org.apache.jena.riot.Lang;
import org.apache.jena.riot.RDFDataMgr;
import org.apache.jena.system.Txn;
import org.apache.jena.tdb2.TDB2Factory;
import org.apache.jena.update.UpdateAction;
import org.apache.jena.update.UpdateFactory;

/**
 * A SPARQL 1.1 store for tests: Apache Jena in a folder, with the addresses that Fuseki has, and like it a transaction for
 * each request. java -cp JARS Jena.java FOLDER PORT
 */
public class Jena {
  interface Handler {
    byte[] answer(HttpExchange x, String body) throws Exception;
  }

  static void handle(HttpServer server, String path, Handler handler) {
    server.createContext(path, x -> {
      byte[] body;
      int status = 200;
      try {
        body = handler.answer(x, new String(x.getRequestBody().readAllBytes(), StandardCharsets.UTF_8));
      } catch (Exception e) {
        status = 400;
        body = String.valueOf(e.getMessage()).getBytes(StandardCharsets.UTF_8);
      }
      x.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
      x.getResponseBody().write(body);
      x.close();
    });
  }

  static byte[] select(Dataset data, HttpExchange x, String form) {
    String text = URLDecoder.decode(form.substring("query=".length()), StandardCharsets.UTF_8);
    Query query = QueryFactory.create(text);
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    Txn.executeRead(data, () -> {
      try (QueryExecution run = QueryExecutionFactory.create(query, data)) {
        if (query.isConstructType()) {
          x.getResponseHeaders().set("Content-Type", "application/n-triples");
          RDFDataMgr.write(out, run.execConstruct(), Lang.NTRIPLES);
          return;
        }
        x.getResponseHeaders().set("Content-Type", "application/sparql-results+json");
        if (query.isAskType()) {
          ResultSetFormatter.outputAsJSON(out, run.execAsk());
        } else {
          ResultSetFormatter.outputAsJSON(out, run.execSelect());
        }
      }
    });
    return out.toByteArray();
  }

  public static void main(String[] args) throws Exception {
    Dataset data = TDB2Factory.connectDataset(args[0]);
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[1])), 0);
    handle(server, "/ds/update", (x, text) -> {
      Txn.executeWrite(data, () -> UpdateAction.execute(UpdateFactory.create(text), data));
      return new byte[0];
    });
    handle(server, "/ds/query", (x, form) -> select(data, x, form));
    server.setExecutor(Executors.newFixedThreadPool(4));
    server.start();
  }
}
