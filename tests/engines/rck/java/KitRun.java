package org.apache.iceberg.rest;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.MethodFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs Iceberg's REST compatibility kit against a server and prints one JSON object per test.
 *
 * <p>Arguments: {@code stock|strict} and a regular expression on the names of test methods.
 * Everything else is a system property, because the kit hands all of them to its REST client.
 *
 * <p>A maintainer must not break: what a strict run reports for "stock" was run with the kit's own
 * class, or did not depend on the difference. {@link StrictCatalogTests} notes which tests asked one
 * of the switches that it turns on; exactly those are run again as the kit ships them.
 */
public final class KitRun {
  private static final String VIEWS = "RESTCompatibilityKitViewCatalogTests";
  private static final String TABLES = "RESTCompatibilityKitCatalogTests";
  private static final List<String> STOCK = List.of("stock");
  private static final List<String> STRICT = List.of("strict");
  private static final List<String> BOTH = List.of("stock", "strict");

  private final ObjectMapper json = new ObjectMapper();
  private final PrintStream out;

  private KitRun(PrintStream out) {
    this.out = out;
  }

  public static void main(String[] args) {
    PrintStream out = System.out;
    // The kit and its libraries may print; standard output belongs to the results.
    System.setOut(System.err);
    KitRun run = new KitRun(out);
    String only = args[1];
    if (args[0].equals("strict")) {
      List<String> differing = new ArrayList<>();
      run.execute(StrictCatalogTests.class.getSimpleName(), only, STRICT, differing);
      run.execute(VIEWS, only, BOTH, null);
      if (!differing.isEmpty()) {
        run.execute(TABLES, anyOf(differing), STOCK, null);
      }
    } else {
      run.execute(TABLES, only, STOCK, null);
      run.execute(VIEWS, only, STOCK, null);
    }
    out.flush();
    // The kit's clients leave threads behind.
    System.exit(0);
  }

  /** Runs one class. Tests that asked no switch count for both modes, the others go to `differing`. */
  private void execute(String className, String only, List<String> modes, List<String> differing) {
    purge();
    TestExecutionListener listener =
        new TestExecutionListener() {
          private long startedNs;

          @Override
          public void executionStarted(TestIdentifier test) {
            StrictCatalogTests.forgetAsked();
            startedNs = System.nanoTime();
          }

          @Override
          public void executionSkipped(TestIdentifier test, String reason) {
            // Such a test never starts, so what the one before it asked would count for it.
            executionStarted(test);
            print(test, "skipped", reason, "");
          }

          @Override
          public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            Throwable error = result.getThrowable().orElse(null);
            switch (result.getStatus()) {
              case SUCCESSFUL -> {
                if (test.isTest()) {
                  print(test, "passed", "", "");
                }
              }
              // A class that cannot start aborts or fails as a whole; that must not look like success.
              case ABORTED -> print(test, "skipped", describe(error), "");
              case FAILED -> print(test, "failed", describe(error), trace(error));
            }
          }

          private void print(TestIdentifier test, String outcome, String reason, String trace) {
            String method =
                test.getSource()
                    .filter(MethodSource.class::isInstance)
                    .map(source -> ((MethodSource) source).getMethodName())
                    .orElse("");
            List<String> counted = modes;
            if (differing != null) {
              if (StrictCatalogTests.wasAsked()) {
                differing.add(method);
              } else {
                counted = BOTH;
              }
            }
            Map<String, Object> line = new LinkedHashMap<>();
            line.put("kit", className.equals(VIEWS) ? "views" : "tables");
            line.put("test", method.isEmpty() ? className : method);
            line.put("variant", test.getDisplayName().startsWith(method + "(") ? "" : test.getDisplayName());
            line.put("modes", counted);
            line.put("outcome", outcome);
            line.put("reason", reason);
            line.put("trace", trace);
            line.put("seconds", (System.nanoTime() - startedNs) / 1_000_000 / 1000.0);
            try {
              out.println(json.writeValueAsString(line));
            } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
              throw new IllegalStateException(e);
            }
          }
        };
    LauncherFactory.create()
        .execute(
            LauncherDiscoveryRequestBuilder.request()
                .selectors(DiscoverySelectors.selectClass("org.apache.iceberg.rest." + className))
                .filters(MethodFilter.includeMethodNamePatterns(".*#(?:" + only + ")"))
                .configurationParameter("rck.local", "false")
                .configurationParameter("junit.jupiter.execution.timeout.default", "100 s")
                .build(),
            listener);
  }

  /** The kit does not start while namespaces of an earlier run exist, so those must go first. */
  private static void purge() {
    try (RESTCatalog catalog = RCKUtils.initCatalogClient()) {
      RCKUtils.purgeCatalogTestEntries(catalog);
      StrictCatalogTests.purge(catalog);
    } catch (Exception e) {
      System.err.println("could not purge: " + e);
    }
  }

  private static String anyOf(List<String> names) {
    return String.join("|", names.stream().distinct().map(Pattern::quote).toList());
  }

  private static String describe(Throwable error) {
    return error == null ? "" : error.getClass().getSimpleName() + ": " + error.getMessage();
  }

  private static String trace(Throwable error) {
    if (error == null) {
      return "";
    }
    StringWriter text = new StringWriter();
    error.printStackTrace(new PrintWriter(text));
    return text.toString();
  }
}
