/*
 * Starts JMeter's command line where its package and its XStream have grown apart: XStream refuses
 * classes that JMeter's own plans name, and JMeter 2.13 doesn't know that it has to allow them.
 *
 *   java -Djmeter.home=/usr/share/jmeter -cp ApacheJMeter.jar JmeterLauncher.java ARGUMENT...
 */
import java.lang.reflect.Field;

public class JmeterLauncher {
    private static final String[] SAVERS = {"JMXSAVER", "JTLSAVER"};

    public static void main(String[] arguments) throws Exception {
        Class<?> driver = Class.forName("org.apache.jmeter.NewDriver");
        Field found = driver.getDeclaredField("loader");
        found.setAccessible(true);
        ClassLoader loader = (ClassLoader) found.get(null);
        Thread.currentThread().setContextClassLoader(loader);
        String home = System.getProperty("jmeter.home");
        Class<?> settings = loader.loadClass("org.apache.jmeter.util.JMeterUtils");
        settings.getMethod("setJMeterHome", String.class).invoke(null, home);
        settings.getMethod("loadJMeterProperties", String.class)
            .invoke(null, home + "/bin/jmeter.properties");
        Class<?> service = loader.loadClass("org.apache.jmeter.save.SaveService");
        for (String name : SAVERS) {
            Field saver = service.getDeclaredField(name);
            saver.setAccessible(true);
            Object stream = saver.get(null);
            stream.getClass().getMethod("allowTypesByWildcard", String[].class)
                .invoke(stream, (Object) new String[] {"org.apache.jmeter.**",
                                                       "org.apache.jorphan.**", "java.**"});
        }
        driver.getMethod("main", String[].class).invoke(null, (Object) arguments);
    }
}
