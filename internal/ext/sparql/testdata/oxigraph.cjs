// A SPARQL 1.1 store in memory for tests: node oxigraph.cjs FOLDER-OF-NODE-MODULES. It prints its address.
const http = require("http");
const path = require("path");
const { Store } = require(path.resolve(process.argv[2], "oxigraph"));

const store = new Store();

function answer(request, text) {
  if (request.headers["content-type"].startsWith("application/sparql-update")) {
    store.update(text);
    return ["text/plain", ""];
  }
  const query = new URLSearchParams(text).get("query");
  const construct = query.trimStart().startsWith("CONSTRUCT");
  const type = construct ? "application/n-triples" : "application/sparql-results+json";
  return [type, store.query(query, { results_format: type })];
}

const server = http.createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    try {
      const [type, text] = answer(request, Buffer.concat(parts).toString("utf8"));
      response.writeHead(200, { "Content-Type": type });
      response.end(text);
    } catch (error) {
      response.writeHead(400, { "Content-Type": "text/plain" });
      response.end(String(error));
    }
  });
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
