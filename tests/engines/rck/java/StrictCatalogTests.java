package org.apache.iceberg.rest;

import java.util.List;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.exceptions.RESTException;
import org.junit.jupiter.api.BeforeEach;

/** The kit with what it leaves off turned on: nested namespaces, dots and slashes in names. */
public class StrictCatalogTests extends RESTCompatibilityKitCatalogTests {
  /** Namespaces that the tests we turn on make, and that the kit does not remove. */
  private static final List<String> EXTRA = List.of("parent", "new.db", "new/db");

  private static boolean asked;

  static void forgetAsked() {
    asked = false;
  }

  /** Whether the test that runs now, or ran last, would have behaved differently in the stock kit. */
  static boolean wasAsked() {
    return asked;
  }

  static void purge(RESTCatalog catalog) {
    for (String name : EXTRA) {
      try {
        drop(catalog, Namespace.of(name));
      } catch (RESTException e) {
        // A server that refuses such a name cannot hold it; the test itself will say so.
      }
    }
  }

  private static void drop(RESTCatalog catalog, Namespace namespace) {
    if (catalog.namespaceExists(namespace)) {
      catalog.listNamespaces(namespace).forEach(child -> drop(catalog, child));
      catalog.listTables(namespace).forEach(catalog::dropTable);
      catalog.dropNamespace(namespace);
    }
  }

  @BeforeEach
  void purgeExtra() {
    purge(catalog());
  }

  @Override
  protected boolean supportsNestedNamespaces() {
    asked = true;
    return true;
  }

  @Override
  protected boolean supportsNamesWithDot() {
    asked = true;
    return true;
  }

  @Override
  protected boolean supportsNamesWithSlashes() {
    asked = true;
    return true;
  }
}
