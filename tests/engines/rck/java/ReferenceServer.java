package org.apache.iceberg.rest;

import java.lang.reflect.Method;
import java.net.InetSocketAddress;
import org.eclipse.jetty.compression.gzip.GzipCompression;
import org.eclipse.jetty.compression.server.CompressionHandler;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;

/**
 * Iceberg's own REST server, on loopback only. Argument: the port. Configured by CATALOG_* variables.
 *
 * <p>Its main class listens on every interface and has no setting for it; this one puts the same
 * servlet behind a listener of ours.
 */
public final class ReferenceServer {
  private ReferenceServer() {}

  public static void main(String[] args) throws Exception {
    Method makeCatalog = RESTCatalogServer.class.getDeclaredMethod("initializeBackendCatalog");
    makeCatalog.setAccessible(true);
    var catalog = (RESTCatalogServer.CatalogContext) makeCatalog.invoke(new RESTCatalogServer());

    var context = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
    var servlet = new RESTCatalogServlet(new RESTServerCatalogAdapter(catalog));
    context.addServlet(new ServletHolder(servlet), "/*");
    var compression = new CompressionHandler();
    compression.putCompression(new GzipCompression());
    context.insertHandler(compression);

    var server = new Server(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])));
    server.setHandler(context);
    server.start();
    System.out.println("ready on port " + args[0]);
    server.join();
  }
}
