// A SOAP 1.2 service made with the npm package `soap`, which serves its WSDL under ?wsdl.
// Prints its port. The packages are those of the folder given as the only argument.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";

const require = createRequire(process.argv[2] + "/");
const soap = require("soap");

const service = {
  Library: {
    LibraryPort: {
      Lend({ reader, isbn, title }) {
        if (Number(reader) < 1) {
          throw {
            Fault: {
              Code: { Value: "soap:Sender", Subcode: { Value: "tns:NoSuchReader" } },
              Reason: { Text: `reader ${reader} is not known` },
              statusCode: 500,
            },
          };
        }
        const book = {
          attributes: { isbn: isbn ?? "none", kind: "novel" },
          title: title ?? "A & B <C>",
          author: ["Ada"],
          published: "1999-12-31",
        };
        return { book: [book], until: "2030-01-02" };
      },
    },
  },
};

const server = createServer((request, response) => {
  response.writeHead(404);
  response.end();
});
const wsdl = readFileSync(new URL("library.wsdl", import.meta.url), "utf8");
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address();
  const here = wsdl.replace("http://127.0.0.1/library", `http://127.0.0.1:${port}/library`);
  soap.listen(server, { path: "/library", services: service, xml: here, forceSoap12Headers: true });
  console.log(port);
});
